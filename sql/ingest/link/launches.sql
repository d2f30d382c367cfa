-- The host call behind each correlation id, and its place in the call tree: one row per trace and id, whatever
-- the call is named.
--
-- A launch may show twice (cudaLaunchKernel around cuLaunchKernel, HIP layers): the outermost call
-- counts, which starts first. One call may launch many kernels (graphs). Its place is looked up here:
-- a join of device activity with the whole call tree copies the wide rows, not the narrow ones.
CREATE OR REPLACE TABLE launches AS
WITH
    wanted AS (
        SELECT DISTINCT part_of(g.event_id) AS part, g.correlation
        FROM staged_gpu_ops AS g
        WHERE g.correlation IS NOT NULL
    ),
    calls AS (
        SELECT
            w.part,
            r.correlation,
            arg_min(
                {'id': r.event_id, 'ts': r.ts, 'dur': r.dur, 'pid': TRY_CAST(r.pid AS BIGINT), 'tid': TRY_CAST(r.tid AS BIGINT)},
                (r.ts, -r.dur, r.event_id)
            ) AS call
        FROM staged_runtime_calls AS r
        JOIN wanted AS w ON w.correlation = r.correlation AND w.part = part_of(r.event_id)
        GROUP BY w.part, r.correlation
    )
SELECT c.part, c.correlation, c.call, t.op_id, t.annotation_id, t.module_id, t.bwd_op_id, t.stack_id, t.step
FROM calls AS c
LEFT JOIN call_tree AS t ON t.event_id = c.call.id AND t.kind = 1
