-- Names of annotations that are an iteration of a serving engine.
--
-- A list of the library, the same for every store: sql/tables/iteration_formats.csv. The numbers in such a name:
-- `iteration_fields`.
CREATE OR REPLACE VIEW iteration_formats AS
-- Columns:
--   format     VARCHAR      Name of the format; it may start in several ways.
--   framework  VARCHAR      Engine that writes it.
--   priority   INTEGER [1]  If formats are nested, the lowest that states a number decides.
--   prefix     VARCHAR      What such names start with.
--   pattern    VARCHAR      Regular expression that they match.
--   source     VARCHAR      Where the engine writes it.
SELECT
    x.format,
    x.framework,
    x.priority,
    x.prefix,
    x.pattern,
    x.source
FROM stored.iteration_formats AS x
