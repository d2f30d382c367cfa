-- Which data-parallel rank, stage, kind of operation or step makes a job slower than if all did the same in the same time.
--
-- In the replay of a part, only this part has its recorded durations. Everything else is uniform: an operation takes
-- the mean of its name over ranks and steps, a transfer the median. The slowdown of a part is the time of that replay
-- / the time of the uniform one; below 1 the part is faster than the mean. Parts do not sum to the slowdown of the
-- whole.
--
-- Title: Slowdown by part of the job
-- Status: experimental
-- Since: 0.1
-- Scope: runs; all ranks of a run take part
-- Reference: ByteDance-Seed/StragglerAnalysis, "Understanding stragglers in large model training using what-if analysis"
-- Needs: GPU activity of two ranks that communicate
CREATE OR REPLACE MACRO slowdown_parts_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   run          VARCHAR      Run name.
--   part_kind    VARCHAR      data-parallel rank, stage, operation or step.
--   part         VARCHAR      The part: lowest rank of the pipeline or the rank, number of the stage or step, name of the kernel.
--   slowdown     DOUBLE [1]   Time with only this part as recorded over the time in which all is uniform.
--   replayed_ns  BIGINT [ns]  Time with only this part as recorded.
--   uniform_ns   BIGINT [ns]  Time in which all is uniform.
WITH
    uniform AS (
        SELECT r.run, r.replayed_ns FROM replays AS r WHERE r.scenario = 'uniform' AND r.part_kind IS NULL AND lib.is_requested(runs, r.run)
    ),
    -- Parts of one rank, or of ranks without common collectives, do not slow down other ranks.
    met AS (
        SELECT DISTINCT m.run FROM matched_collectives AS m WHERE lib.is_requested(runs, m.run)
    )
SELECT r.run, r.part_kind, r.part, r.replayed_ns / nullif(u.replayed_ns, 0) AS slowdown, r.replayed_ns, u.replayed_ns AS uniform_ns
FROM replays AS r
JOIN uniform AS u ON u.run = r.run
JOIN met AS m ON m.run = r.run
WHERE r.part_kind IS NOT NULL AND r.scenario = 'uniform'
ORDER BY r.run, r.part_kind, slowdown DESC, r.part
