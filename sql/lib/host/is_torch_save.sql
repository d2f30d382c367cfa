-- Whether a Python frame is torch.save.
CREATE OR REPLACE MACRO lib.is_torch_save(
    -- Name of a Python call.
    frame_name
) AS
-- Returns: BOOLEAN  Whether the frame is torch.save.
regexp_matches(frame_name, '(^|/)torch/serialization\.py\(\d+\): save$')
