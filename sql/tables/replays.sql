-- Predicted time of a run in each scenario, from a replay of its operations on their dependencies.
--
-- Computed once for all ranks of a run and stored next to the tables. A run that is not materialized has no rows.
CREATE OR REPLACE VIEW replays AS
-- Columns:
--   run              VARCHAR         Run: one capture of one job.
--   scenario         VARCHAR         as recorded, no late rank, balanced, no transfer, no exposed communication, perfect overlap, link at peers' speed, uniform; x 0, x 0.5, x 0.8: a kernel or class takes this share of its time.
--   part_kind        VARCHAR         data-parallel rank, stage, operation or step: only this part is as recorded, everything else uniform; class or kernel: the faster part; NULL for the whole job.
--   part             VARCHAR         The part of this kind.
--   recorded_ns      BIGINT [ns]     Time from the first start to the last end, as recorded; of each recording.
--   replayed_ns      BIGINT [ns]     The same in this scenario.
--   low_ns           BIGINT [ns]     Least saving: 95 % interval from its scatter over steps; NULL for fewer than two.
--   high_ns          BIGINT [ns]     Largest saving.
--   changed_ranks    VARCHAR         Ranks that are changed, as JSON; NULL for all.
--   node_count       BIGINT [count]  Operations, and calls in which hosts wait, that were replayed.
--   free_host_count  BIGINT [count]  Recordings whose host launches work and was never seen to wait for the device.
SELECT x.*
FROM derived.replays AS x
