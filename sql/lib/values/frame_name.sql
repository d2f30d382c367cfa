-- Name of a Python frame without object addresses, which differ between runs.
CREATE OR REPLACE MACRO lib.frame_name(
    -- Recorded name, such as <built-in method item of Tensor object at 0x7f8633211270>.
    frame
) AS
-- Returns: VARCHAR  Name, such as <built-in method item of Tensor object>; other names unchanged.
CASE WHEN contains(frame, ' at 0x') THEN regexp_replace(frame, ' at 0x[0-9a-fA-F]+', '', 'g') ELSE frame END
