-- One row per tag of a run: what its users say of it, by ingest --tag and runs tag.
CREATE OR REPLACE VIEW run_tags AS
-- Columns:
--   run        VARCHAR  Run: one capture of one job.
--   tag        VARCHAR  Name of the tag.
--   tag_value  VARCHAR  What it says.
SELECT
    t.run,
    t.tag,
    t.tag_value
FROM stored.run_tags AS t
