-- Names of annotations that mark an iteration of a serving engine.
--
-- A built-in table, the same for every store: sql/tables/iteration_formats.csv. `iteration_fields` has
-- the patterns that extract numbers from the names.
CREATE OR REPLACE VIEW iteration_formats AS
-- Columns:
--   format     VARCHAR      Name of the format; several prefixes may share it.
--   framework  VARCHAR      Engine that writes the annotation.
--   priority   INTEGER [1]  If iterations are nested, the annotation with the lowest priority value among those that contain a number is used.
--   is_shared  BOOLEAN      Whether other engines also write names of this format, in addition to their own.
--   prefix     VARCHAR      Prefix of the annotation name.
--   pattern    VARCHAR      Regular expression that the annotation name matches.
--   source     VARCHAR      Source code in which the engine writes the annotation.
SELECT x.*
FROM stored.iteration_formats AS x
