-- Tags of runs, set with ingest --tag and runs tag; one row per tag.
CREATE OR REPLACE VIEW run_tags AS
-- Columns:
--   run        VARCHAR  Run name: one capture of one job.
--   tag        VARCHAR  Name of the tag.
--   tag_value  VARCHAR  Value of the tag.
SELECT
    t.run,
    t.tag,
    t.tag_value
FROM stored.run_tags AS t
