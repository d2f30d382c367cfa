-- How much each data-parallel rank, stage, kind of operation and step slows down a job, relative to a uniform job.
--
-- In the replay of a part, only this part has its recorded durations. Everything else is uniform: an operation takes
-- the mean duration of all operations with its name over ranks and steps, and a transfer takes the median duration. The
-- slowdown of a part is the time of its replay divided by the time of the uniform replay; if it is below 1, the part is
-- faster than the mean. The slowdowns of the parts do not sum to the slowdown of the job.
--
-- Title: Slowdown by part of the job
-- Status: experimental
-- Since: 0.1
-- Scope: runs; all ranks of a run take part
-- Reference: ByteDance-Seed/StragglerAnalysis, "Understanding stragglers in large model training using what-if analysis"
-- Needs: GPU activity of two ranks that communicate
CREATE OR REPLACE MACRO slowdown_parts_v1(
    runs VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   run          VARCHAR      Run name.
--   part_kind    VARCHAR      data-parallel rank, stage, operation or step.
--   part         VARCHAR      Name of the part: lowest rank of the pipeline for a data-parallel rank, number of the stage or step, or kernel name for an operation.
--   slowdown     DOUBLE [1]   Time with only this part as recorded, divided by the time with everything uniform.
--   replayed_ns  BIGINT [ns]  Time with only this part as recorded.
--   uniform_ns   BIGINT [ns]  Time with everything uniform.
WITH
    uniform AS (
        SELECT r.run, r.replayed_ns FROM replays AS r WHERE r.scenario = 'uniform' AND r.part_kind IS NULL AND lib.is_requested(runs, r.run)
    ),
    -- If a run has only one rank, or its ranks share no collectives, no part slows down other ranks.
    met AS (
        SELECT DISTINCT m.run FROM matched_collectives AS m WHERE lib.is_requested(runs, m.run)
    )
SELECT r.run, r.part_kind, r.part, r.replayed_ns / nullif(u.replayed_ns, 0) AS slowdown, r.replayed_ns, u.replayed_ns AS uniform_ns
FROM replays AS r
JOIN uniform AS u ON u.run = r.run
JOIN met AS m ON m.run = r.run
WHERE r.part_kind IS NOT NULL AND r.scenario = 'uniform'
ORDER BY r.run, r.part_kind, slowdown DESC, r.part
