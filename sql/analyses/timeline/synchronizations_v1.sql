-- Host synchronizations: blocking calls by operator and source line, with the device idle time that each causes.
--
-- A call's time consists of time in which the device works (busy_ns, including copy_ns for the awaited copy) and time
-- in which the device has no work (idle_during_ns). The cost comes afterwards: the device drains its queue during the
-- call and stays idle until the host launches more work (idle_after_ns). idle_after_ns covers the idle time that
-- `idle_causes` attributes to the synchronization, its effects, or the device queue. It excludes data loading, which
-- would also occur without the call. It is limited to the duration of the call, because without the call the host
-- would be ahead by at most this duration. Idle time in overlapping steps counts once, unlike in `idle_causes`. A call
-- that waits while the device works costs nothing by itself if enough work was launched before it.
--
-- Title: Where the host waits for the GPU
-- Shown: rank, idle_after_ns, host_ns, operator, frame, call, message, call_count
-- Also: sync, device synchronize, cuda synchronize, item calls
-- Status: stable
-- Since: 0.1
-- Reference: torch.profiler synchronization warnings, Nsight Systems expert rules
-- Needs: GPU activity and runtime calls; source lines need with_stack=True
-- Report: first 4; table
CREATE OR REPLACE MACRO synchronizations_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   rank            INTEGER         Rank of the process.
--   position        BIGINT [1]      Position by idle_after_ns on the rank; 1 is the longest.
--   kind            VARCHAR         Awaited object: device, stream, event, or copy (the call returns only after the copy has ended).
--   call            VARCHAR         Name of the runtime call.
--   operator        VARCHAR         Innermost enclosing operator; NULL if none.
--   frame           VARCHAR         Innermost enclosing Python frame of a source file; NULL if none or not recorded.
--   module          VARCHAR         Class of the innermost enclosing nn.Module; NULL if none or not recorded.
--   call_count      BIGINT [count]  Number of calls.
--   host_ns         BIGINT [ns]     Total duration of the calls.
--   busy_ns         BIGINT [ns]     Part of host_ns in which the device works.
--   copy_ns         BIGINT [ns]     Part of host_ns in copies that the calls wait for, concurrent copies of a call once; NULL unless kind is copy.
--   idle_during_ns  BIGINT [ns]     Part of host_ns in which the device has no work.
--   idle_after_ns   BIGINT [ns]     Device idle time caused by the calls, from when the queue drains until new work starts, excluding data loading; for each call, at most its duration.
--   longest_ns      BIGINT [ns]     Longest idle_after_ns of one call.
--   event_id        BIGINT          event_id of the call with longest_ns, or of the longest call if none caused idle time; the first one if several are equal.
--   message_code    VARCHAR         Code of the message in the table messages.
--   message         VARCHAR         Explanation and recommended next step.
WITH
    calls AS MATERIALIZED (
        SELECT
            b.run, b.rank, b.event_id, b.name, r.ts, r.ts + r.dur AS end_ts, r.op_id, r.module_id, r.frame_id,
            coalesce(b.copy_ns, 0) AS copied, b.copy_ns IS NOT NULL AS is_copy
        FROM lib.blocking_calls(runs, ranks) AS b
        JOIN runtime_calls AS r ON r.run = b.run AND r.rank = b.rank AND r.event_id = b.event_id
        WHERE lib.is_requested(steps, r.step) AND (include_last_profiler_step OR NOT r.in_last_step)
    ),
    busy_ops AS (
        SELECT {'run': g.run, 'rank': g.rank} AS lane, g.ts, g.dur
        FROM gpu_ops AS g
        WHERE g.class <> 'sync' AND NOT g.is_suspect AND g.dur > 0 AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    -- Prefix sums: the busy time of an interval is the sum at its end minus the sum at its start.
    islands AS MATERIALIZED (
        SELECT
            m.lane.run AS run, m.lane.rank AS rank, m.ts, m.dur,
            (sum(m.dur) OVER (PARTITION BY m.lane ORDER BY m.ts) - m.dur)::BIGINT AS before
        FROM lib.merged_intervals('busy_ops') AS m
    ),
    timed AS (
        SELECT
            c.*,
            coalesce(e.before + least(c.end_ts - e.ts, e.dur), 0) - coalesce(s.before + least(c.ts - s.ts, s.dur), 0) AS busy
        FROM calls AS c
        ASOF LEFT JOIN islands AS s ON s.run = c.run AND s.rank = c.rank AND c.ts >= s.ts
        ASOF LEFT JOIN islands AS e ON e.run = c.run AND e.rank = c.rank AND c.end_ts >= e.ts
    ),
    drained_parts AS MATERIALIZED (
        SELECT p.*
        FROM lib.idle_parts(runs, ranks, steps, include_last_profiler_step) AS p
        WHERE p.drain_id IS NOT NULL AND p.waits_for <> 'unrecorded'
    ),
    reasons AS (
        SELECT r.part, sum(r.dur)::BIGINT AS dur
        FROM lib.idle_reasons(runs, ranks, 'drained_parts', 'operator') AS r
        WHERE r.cause = 'synchronization' OR r.relation IN ('effect', 'device')
        GROUP BY r.part
    ),
    drained AS (
        SELECT p.run, p.rank, p.drain_id, sum(r.dur)::BIGINT AS idle
        FROM drained_parts AS p
        JOIN reasons AS r ON r.part = p.part
        GROUP BY p.run, p.rank, p.drain_id
    ),
    placed AS (
        SELECT
            t.run, t.rank, t.event_id, t.name AS call, t.ts, t.end_ts - t.ts AS dur, t.busy, t.copied,
            least(coalesce(d.idle, 0), t.end_ts - t.ts) AS idle,
            CASE
                WHEN t.is_copy THEN 'copy'
                WHEN contains(t.name, 'Stream') THEN 'stream'
                WHEN contains(t.name, 'Event') THEN 'event'
                ELSE 'device'
            END AS kind,
            o.name AS operator,
            -- For built-in functions, report the calling frame.
            lib.frame_name(CASE WHEN starts_with(f.name, '<built-in') THEN q.name ELSE f.name END) AS frame,
            lib.module_class(lib.module_name(m.name)) AS module
        FROM timed AS t
        LEFT JOIN drained AS d ON d.run = t.run AND d.rank = t.rank AND d.drain_id = t.event_id
        LEFT JOIN cpu_ops AS o ON o.run = t.run AND o.rank = t.rank AND o.event_id = t.op_id
        LEFT JOIN python_calls AS m ON m.run = t.run AND m.rank = t.rank AND m.event_id = t.module_id
        LEFT JOIN python_calls AS f ON f.run = t.run AND f.rank = t.rank AND f.event_id = t.frame_id
        LEFT JOIN python_calls AS q ON q.run = t.run AND q.rank = t.rank AND q.event_id = f.parent_frame_id
    ),
    grouped AS (
        SELECT
            p.run, p.rank, p.kind, p.call, p.operator, p.frame, p.module,
            count(*) AS call_count,
            sum(p.dur)::BIGINT AS host,
            sum(p.busy)::BIGINT AS busy,
            sum(p.copied)::BIGINT AS copied,
            sum(p.idle)::BIGINT AS idle,
            max(p.idle) AS longest,
            arg_max(p.event_id, (p.idle, p.dur, -p.ts, -p.event_id)) AS event_id
        FROM placed AS p
        GROUP BY ALL
    ),
    described AS (
        SELECT
            g.*,
            CASE
                WHEN g.idle = 0 AND g.busy = 0 THEN lib.message('synchronizations.nothing_to_wait_for', NULL)
                WHEN g.idle = 0 THEN lib.message('synchronizations.device_stays_busy', NULL)
                WHEN regexp_matches(g.operator, '^aten::(item|_local_scalar_dense|is_nonzero|equal)$') THEN lib.message('synchronizations.value_read', NULL)
                WHEN regexp_matches(g.operator, '^aten::(nonzero|masked_select|unique|_unique2|index|repeat_interleave)$') THEN lib.message('synchronizations.size_needed', NULL)
                WHEN g.kind = 'copy' OR regexp_matches(g.operator, '^aten::(copy_|_to_copy|to|cpu)$') THEN lib.message('synchronizations.blocking_copy', NULL)
                ELSE lib.message('synchronizations.device_drained', NULL)
            END AS message
        FROM grouped AS g
    )
SELECT
    g.run,
    g.rank,
    row_number() OVER (PARTITION BY g.run, g.rank ORDER BY g.idle DESC, g.host DESC, g.call, g.operator, g.frame, g.module, g.kind) AS position,
    g.kind,
    g.call,
    g.operator,
    g.frame,
    g.module,
    g.call_count,
    g.host AS host_ns,
    g.busy AS busy_ns,
    CASE WHEN g.kind = 'copy' THEN g.copied END AS copy_ns,
    g.host - g.busy AS idle_during_ns,
    g.idle AS idle_after_ns,
    g.longest AS longest_ns,
    g.event_id,
    g.message.code AS message_code,
    lib.message_text(t.message, g.message.fields) AS message
FROM described AS g
LEFT JOIN messages AS t ON t.code = g.message.code
ORDER BY g.run, g.rank, position
