-- Stretches of each idle interval of a device, with their cause: the host activity on the thread that launches the
-- next operation.
--
-- The stretches of an idle interval sum to its length. See the idle_causes analysis for the causes.
CREATE OR REPLACE MACRO lib.idle_reasons(
    runs,
    ranks,
    -- Name of a relation with the columns of lib.idle_parts.
    parts,
    -- Name reported first: operator, outermost operator, module, frame or annotation.
    level
) AS TABLE
-- Columns:
--   part      BIGINT [1]   Number of the idle interval.
--   dur       BIGINT [ns]  Length of the stretch.
--   before_ns  BIGINT [ns]  Position of the stretch among those of its interval: idle time before it.
--   event_id  BIGINT       Event to inspect; NULL if unknown.
--   cause     VARCHAR      Cause of the idle time: data loading, synchronization, runtime call, host operator, module, python, annotation, no event, device queue, unrecorded or unknown.
--   relation  VARCHAR      Relation to the idle time: cause, effect (after a synchronization that drained the queue), device, unrecorded or unknown.
--   name      VARCHAR      Name of the host activity, chosen by level; NULL if none was open or the device is the cause.
--   call      VARCHAR      Runtime call that was active, unless it launches kernels; NULL otherwise.
--   module    VARCHAR      Class of the innermost nn.Module; NULL if none or not recorded.
WITH
    _waiting AS (
        SELECT p.* FROM query_table(parts) AS p WHERE p.waits_for = 'host'
    ),
    _launches AS (
        SELECT DISTINCT g.run, g.rank, g.launch_id
        FROM gpu_ops AS g
        WHERE g.class NOT IN ('memory', 'sync') AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    _named AS (
        SELECT
            s.part,
            s.dur,
            s.before_ns,
            s.event_id,
            s.is_loading,
            s.is_loading OR s.is_saving AS has_purpose,
            s.call_name LIKE '%Synchronize%' AND s.is_call OR s.is_call AND s.event_id = p.drain_id AS synchronizes,
            p.drain_id IS NOT NULL AS is_drained,
            CASE WHEN s.is_call AND l.launch_id IS NULL THEN s.call_name END AS call,
            CASE level
                WHEN 'operator' THEN {'cause': 'host operator', 'name': s.op_name}
                WHEN 'outermost operator' THEN {'cause': 'host operator', 'name': s.outer_op_name}
                WHEN 'module' THEN {'cause': 'module', 'name': s.module_name}
                WHEN 'frame' THEN {'cause': 'python', 'name': s.frame_name}
                WHEN 'annotation' THEN {'cause': 'annotation', 'name': s.annotation_name}
                ELSE error('level: "' || level || '" is none of operator, outermost operator, module, frame, annotation')
            END AS first,
            CASE
                WHEN s.inner_kind = 'op' THEN {'cause': 'host operator', 'name': s.inner_name}
                WHEN s.inner_kind = 'frame' THEN {'cause': 'python', 'name': s.inner_name}
                WHEN s.inner_kind = 'annotation' THEN {'cause': 'annotation', 'name': s.inner_name}
                WHEN s.call_name IS NOT NULL THEN {'cause': 'runtime call', 'name': s.call_name}
            END AS second,
            lib.module_class(s.module_name) AS module
        FROM lib._host_stretches(runs, ranks, '_waiting', level = 'outermost operator') AS s
        JOIN query_table(parts) AS p ON p.part = s.part
        LEFT JOIN _launches AS l ON l.run = p.run AND l.rank = p.rank AND l.launch_id = s.event_id
    )
SELECT
    n.part,
    n.dur,
    n.before_ns,
    n.event_id,
    CASE
        WHEN n.is_loading THEN 'data loading'
        WHEN n.synchronizes THEN 'synchronization'
        WHEN n.call IS NOT NULL THEN 'runtime call'
        WHEN n.first.name IS NOT NULL THEN n.first.cause
        ELSE coalesce(n.second.cause, 'no event')
    END AS cause,
    CASE
        WHEN n.event_id IS NULL THEN 'unknown'
        -- Loading data and saving a checkpoint take their time without the synchronization, too.
        WHEN n.is_drained AND NOT n.has_purpose AND NOT n.synchronizes THEN 'effect'
        ELSE 'cause'
    END AS relation,
    lib.frame_name(coalesce(n.first.name, n.second.name)) AS name,
    n.call,
    n.module
FROM _named AS n
UNION ALL
SELECT
    p.part, p.dur, 0, p.next_id,
    CASE p.waits_for WHEN 'device' THEN 'device queue' ELSE p.waits_for END, p.waits_for, NULL, NULL, NULL
FROM query_table(parts) AS p
WHERE p.waits_for <> 'host'
