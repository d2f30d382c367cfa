-- Name of an nn.Module from the frame of its call.
CREATE OR REPLACE MACRO lib.module_name(
    -- Recorded name of the frame, such as nn.Module: Linear_3.
    frame
) AS
-- Returns: VARCHAR  Name, such as Linear_3; NULL for other frames.
CASE WHEN starts_with(frame, 'nn.Module: ') THEN substr(frame, 12) END
