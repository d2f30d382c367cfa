-- Predicted time of a run in each scenario, from a replay of its operations along their dependencies.
--
-- The rows are computed once for all ranks of a run and materialized next to the tables. A run that is not
-- materialized has no rows.
CREATE OR REPLACE VIEW replays AS
-- Columns:
--   run              VARCHAR         Run: one capture of one job.
--   scenario         VARCHAR         as recorded, no late rank, balanced, no transfer, no exposed communication, perfect overlap, link at peers' speed, uniform; x 0, x 0.5, x 0.8: a kernel or class takes this fraction of its recorded time.
--   part_kind        VARCHAR         data-parallel rank, stage, operation or step: only this part is as recorded, and everything else is uniform; class or kernel: this part is faster; NULL if the scenario applies to the whole job.
--   part             VARCHAR         Name of the part.
--   recorded_ns      BIGINT [ns]     Time from the first start to the last end, as recorded, over all recordings.
--   replayed_ns      BIGINT [ns]     The same time in this scenario.
--   low_ns           BIGINT [ns]     Lower end of the 95 % interval of the saving, from the variation of the saving over steps; NULL for fewer than two steps.
--   high_ns          BIGINT [ns]     Upper end of that interval.
--   changed_ranks    VARCHAR         Ranks that the scenario changes, as JSON; NULL for all.
--   node_count       BIGINT [count]  Number of replayed device operations and waiting host calls.
--   free_host_count  BIGINT [count]  Number of recordings in which the host launches work, but no wait for the device is recorded.
SELECT x.*
FROM derived.replays AS x
