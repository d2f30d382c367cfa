-- Python frames and ranges in which a serving engine runs one iteration, for traces without its annotations.
--
-- A built-in table, the same for every store: sql/tables/iteration_frames.csv.
CREATE OR REPLACE VIEW iteration_frames AS
-- Columns:
--   framework  VARCHAR      Engine whose source has the frame; any: no specific engine.
--   priority   INTEGER [1]  If several patterns match calls of a rank, the pattern with the lowest priority value is used.
--   part       VARCHAR      Text that the name contains; only such names are compared with the pattern, which takes longer.
--   pattern    VARCHAR      Regular expression that the whole name of the frame or range matches.
--   source     VARCHAR      Source code of the frame.
SELECT x.*
FROM stored.iteration_frames AS x
