-- Host side of device activity: its launch, or the operator with the same external id.

-- name: launches
-- Host call of each correlation id with its position in the call tree: one row per trace and id, regardless of the
-- call's name.
--
-- A launch may appear twice (cudaLaunchKernel around cuLaunchKernel, HIP layers): the outermost call, which starts
-- first, counts. One call may launch many kernels (graphs). The position is looked up here because joining device
-- activity with the whole call tree would copy wide rows instead of narrow ones.
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
LEFT JOIN call_tree AS t ON t.event_id = c.call.id AND t.kind = 1;

-- name: device_steps
-- Profiler step of events outside the host call tree: device annotations, and device activity without a launch in the
-- trace. All other events have the step of their host event.
CREATE OR REPLACE TABLE device_steps AS
WITH
    alone AS (
        SELECT g.event_id, g.ts
        FROM staged_gpu_ops AS g
        LEFT JOIN launches AS l ON l.correlation = g.correlation AND l.part = part_of(g.event_id)
        WHERE l.correlation IS NULL
        UNION ALL
        SELECT a.event_id, a.ts
        FROM staged_annotations AS a
        WHERE a.cat <> 'user_annotation'
    ),
    windows AS (
        FROM step_windows AS w
        WHERE w.ts < w.end_ts
    )
SELECT a.event_id, s.step
FROM alone AS a
ASOF JOIN windows AS s ON s.part = part_of(a.event_id) AND a.ts >= s.ts
WHERE a.ts < s.end_ts;

-- name: operators_by_external_id
-- Host operator of each external id, for device activity without a launch in the trace.
CREATE OR REPLACE TABLE operators_by_external_id AS
WITH
    wanted AS (
        SELECT DISTINCT part_of(g.event_id) AS part, g.external_id
        FROM staged_gpu_ops AS g
        LEFT JOIN launches AS l ON l.correlation = g.correlation AND l.part = part_of(g.event_id)
        WHERE l.correlation IS NULL AND g.external_id > 0
    )
SELECT w.part, c.external_id, arg_min(c.event_id, (c.ts, -c.dur, c.event_id)) AS op_id
FROM staged_cpu_ops AS c
JOIN wanted AS w ON w.external_id = c.external_id AND w.part = part_of(c.event_id)
GROUP BY w.part, c.external_id;
