-- Usual length of a launch on each rank: the unit of thresholds that depend on how fast the host and device react.
--
-- It is the length that a tenth of the rank's launch calls do not exceed: 3 to 9 us on GPUs. Most longer calls wait for
-- space in a queue or launch a whole graph. If launches have no length, it is the corresponding length of the kernels.
CREATE OR REPLACE MACRO lib.launch_lengths(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run        VARCHAR      Run name.
--   rank       INTEGER      Rank of the process.
--   launch_ns  BIGINT [ns]  Usual length of a launch, at least 1.
WITH
    _launches AS (
        SELECT g.run, g.rank, coalesce(g.launch_id, -1 - g.event_id) AS id, any_value(nullif(g.launch_dur, 0)) AS launch_ns, min(nullif(g.dur, 0)) AS op_ns
        FROM gpu_ops AS g
        WHERE g.class <> 'sync' AND NOT g.is_suspect AND g.dur >= 0 AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
        GROUP BY g.run, g.rank, id
    )
SELECT l.run, l.rank, greatest(1, coalesce(quantile_disc(l.launch_ns, 0.1), quantile_disc(l.op_ns, 0.1), 1))::BIGINT AS launch_ns
FROM _launches AS l
GROUP BY l.run, l.rank
