-- Time during which the launch queue of each device stream is full, so that launches block the host.
--
-- A stream whose queue was never full also has a row, if an operation ever waited in the queue. HTA reports only the
-- last stream of each rank (Q33). HTA's default limit of 1,024 is never reached, because CUDA queues hold 1,022
-- operations (Q34).
--
-- Title: Time with a full launch queue
-- Shown: rank, stream, full_ns, full_pct, full_count, max_length
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_time_spent_blocked_on_full_queue
-- Needs: GPU activity and runtime calls
-- Chart:
--   mark = "ranks"
--   title = "Time during which launch queues are full"
--   empty = "No queue was full."
--   bar = ["rank", "device", "stream"]
--   value = "full_pct"
--   measure = "Share of the observed time"
--   tooltip.full_ns = "Time"
--   tooltip.full_count = "Times it became full"
--   tooltip.max_length = "Longest queue"
CREATE OR REPLACE MACRO queue_full_time_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Minimum length at which a queue counts as full [operations].
    max_queue_length BIGINT := 1022
) AS TABLE
-- Columns:
--   run         VARCHAR         Run name.
--   rank        INTEGER         Rank of the process.
--   device      BIGINT          Device number.
--   stream      BIGINT          Device stream.
--   full_ns     BIGINT [ns]     Time with a full queue.
--   full_pct    DOUBLE [%]      full_ns as a share of the time in which the rank was observed.
--   full_count  BIGINT [count]  Number of times the queue became full.
--   max_length  BIGINT [1]      Longest queue length.
WITH
    points AS (
        SELECT
            q.*,
            q.queue_length >= max_queue_length AS is_full,
            coalesce(lag(q.queue_length) OVER in_time >= max_queue_length, false) AS was_full
        FROM lib.queue_length(runs, ranks, steps, include_last_profiler_step) AS q
        WINDOW in_time AS (PARTITION BY q.run, q.rank, lib.span_of(q.event_id), q.device, q.stream ORDER BY q.ts)
    ),
    -- A rank is observed from its first host operator, runtime call or device operation to the end of the last one.
    recordings AS (
        SELECT g.run, g.rank, g.span, min(g.ts) AS first_start, max(g.ts + g.dur) AS last_end
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        GROUP BY g.run, g.rank, g.span
        UNION ALL
        SELECT h.run, h.rank, lib.span_of(h.event_id), min(h.ts), max(h.ts + h.dur)
        FROM lib.host_events(runs, ranks) AS h
        WHERE
            h.table_name IN ('cpu_ops', 'runtime_calls')
            AND lib.is_requested(steps, h.step)
            AND (include_last_profiler_step OR NOT h.in_last_step)
        GROUP BY h.run, h.rank, lib.span_of(h.event_id)
    ),
    observed AS (
        SELECT s.run, s.rank, max(s.last_end) - min(s.first_start) AS dur
        FROM recordings AS s
        GROUP BY s.run, s.rank, s.span
    ),
    spans AS (
        SELECT o.run, o.rank, sum(o.dur)::BIGINT AS dur
        FROM observed AS o
        GROUP BY o.run, o.rank
    )
SELECT
    p.run,
    p.rank,
    p.device,
    p.stream,
    coalesce(sum(p.dur) FILTER (p.is_full), 0)::BIGINT AS full_ns,
    100::DOUBLE * coalesce(sum(p.dur) FILTER (p.is_full), 0) / any_value(s.dur) AS full_pct,
    count(*) FILTER (p.is_full AND NOT p.was_full) AS full_count,
    max(p.queue_length) AS max_length
FROM points AS p
JOIN spans AS s ON s.run = p.run AND s.rank = p.rank
GROUP BY p.run, p.rank, p.device, p.stream
ORDER BY p.run, p.rank, p.device, p.stream
