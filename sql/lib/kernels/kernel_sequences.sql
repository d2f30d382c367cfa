-- Operations launched by each call, in order of start on the device: one row per call.
--
-- Calls are the outermost events of a thread whose name contains the given string: operators, annotations, runtime
-- and Python calls. The operations of a call are those that its thread launched during the call, including copies and
-- memsets; calls with fewer than min_pattern_len operations have no row.
CREATE OR REPLACE MACRO lib.kernel_sequences(
    runs,
    ranks,
    steps,
    include_last_profiler_step,
    -- Substring of the event names.
    operator_name,
    -- Minimum sequence length [kernels, copies and memsets].
    min_pattern_len
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   event_id      BIGINT          event_id of the call.
--   lane          ANY             Run, rank, process and thread of the call.
--   ts            BIGINT [ns]     Start of the call.
--   dur           BIGINT [ns]     Duration of the call.
--   name          VARCHAR         Name of the call.
--   pattern       VARCHAR         Name of the call, then the names of the operations that it launched, in order of start, joined by |.
--   kernel_count  BIGINT [count]  Number of launched operations.
--   device_dur    BIGINT [ns]     Total duration of these operations.
WITH
    _named AS (
        SELECT
            h.event_id,
            {'run': h.run, 'rank': h.rank, 'pid': h.pid, 'tid': h.tid} AS lane,
            h.ts,
            h.ts + h.dur AS end_ts,
            h.name,
            -- A call that ends no later than a call that started before it is nested in that call.
            max(h.ts + h.dur) OVER (
                PARTITION BY h.run, h.rank, h.pid, h.tid
                ORDER BY h.ts, h.dur DESC, h.event_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS before_end_ts
        FROM lib.scoped_host_events(runs, ranks, steps, include_last_profiler_step) AS h
        WHERE contains(h.name, operator_name)
    ),
    _roots AS (
        SELECT n.* FROM _named AS n WHERE n.before_end_ts IS NULL OR n.before_end_ts < n.end_ts
    ),
    _launched AS (
        SELECT
            g.event_id,
            {'run': c.run, 'rank': c.rank, 'pid': c.pid, 'tid': c.tid} AS lane,
            c.ts AS call_ts,
            c.ts + c.dur AS call_end_ts,
            g.name,
            g.ts,
            g.dur
        FROM lib.scoped_gpu_ops(runs, ranks, NULL, include_last_profiler_step) AS g
        JOIN runtime_calls AS c ON c.run = g.run AND c.rank = g.rank AND c.event_id = g.launch_id
    ),
    _owned AS (
        SELECT r.event_id, r.lane, r.ts, r.end_ts, r.name, l.name AS kernel, l.ts AS kernel_ts, l.dur AS kernel_dur, l.event_id AS kernel_id
        FROM _launched AS l
        ASOF JOIN _roots AS r ON r.lane = l.lane AND r.ts <= l.call_ts
        WHERE l.call_end_ts <= r.end_ts
    ),
    _sequences AS (
        SELECT
            o.event_id,
            o.lane,
            o.ts,
            o.end_ts - o.ts AS dur,
            o.name,
            o.name || '|' || string_agg(o.kernel, '|' ORDER BY o.kernel_ts, o.kernel_id) AS pattern,
            count(*) AS kernel_count,
            sum(o.kernel_dur)::BIGINT AS device_dur
        FROM _owned AS o
        GROUP BY o.event_id, o.lane, o.ts, o.end_ts, o.name
    )
SELECT
    q.lane.run AS run,
    q.lane.rank AS rank,
    q.event_id AS event_id,
    q.lane AS lane,
    q.ts AS ts,
    q.dur AS dur,
    q.name AS name,
    q.pattern AS pattern,
    q.kernel_count AS kernel_count,
    q.device_dur AS device_dur
FROM _sequences AS q
WHERE q.kernel_count >= min_pattern_len
