-- The name of an nn.Module in the frame of its call.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.module_name(
    -- Name of the frame as recorded: nn.Module: Linear_3.
    frame
) AS
-- Returns: VARCHAR  Linear_3; NULL for other frames.
CASE WHEN starts_with(frame, 'nn.Module: ') THEN substr(frame, 12) END
