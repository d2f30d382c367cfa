-- What the time of the steps goes to, longest first: idle GPUs by cause, exposed transfers, waits for other
-- ranks, exposed copies, kernels.
--
-- The time is that of the steps of the host, on all ranks; idle and exposed times are the parts of
-- `step_accounting`, which exclude each other. Idle between operations is idle_host where the host launched
-- the operation that ends the gap only after everything before it had ended, idle_queued where it was
-- launched before, idle_unknown where its launch is not in the trace. Kernels are the longest of the class
-- computation by the sum of their durations, so that kernels of two streams at once count twice. What costs
-- nothing has no row.
--
-- Title: What costs most
-- Status: stable
-- Since: 0.1
-- Reference: the first question of every look at a trace
-- Needs: GPU activity
CREATE OR REPLACE MACRO top_costs_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and what lies outside of steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Kernels per run; NULL means every kernel.
    num_kernels BIGINT := 3
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   position        BIGINT [1]      1 for the highest cost of the run.
--   cost            VARCHAR         idle_before, idle_host, idle_queued, idle_unknown, idle_after, exposed_transfer, exposed_wait, exposed_memory or kernel.
--   subject         VARCHAR         Name of the kernel; NULL for other costs.
--   cost_ns         BIGINT [ns]     On all ranks.
--   cost_pct        DOUBLE [%]      Share of the time of the steps of the run.
--   event_count     BIGINT [count]  Gaps, or launches of the kernel; NULL for other costs.
--   worst_rank      INTEGER         Rank with the highest cost; of equal ones the lowest. Of waits, who waits longest.
--   worst_rank_ns   BIGINT [ns]     Its cost.
--   worst_rank_pct  DOUBLE [%]      Share of that rank's own steps.
--   message_code    VARCHAR         Code of the message in the table messages.
--   message         VARCHAR         What it means; of waits, for whom.
--   next_analysis   VARCHAR         Analysis that shows more.
WITH
    windows AS MATERIALIZED (
        SELECT p.*, p.ts + p.step_ns AS end_ts
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
    ),
    -- A rank whose device does nothing has no idle GPU.
    times AS MATERIALIZED (
        SELECT
            w.run, w.rank, sum(w.step_ns)::BIGINT AS span,
            sum(w.idle_before_ns)::BIGINT AS idle_before, sum(w.idle_after_ns)::BIGINT AS idle_after,
            sum(w.exposed_transfer_ns)::BIGINT AS transfer, sum(w.exposed_wait_ns)::BIGINT AS wait, sum(w.exposed_memory_ns)::BIGINT AS memory
        FROM windows AS w
        GROUP BY w.run, w.rank
        HAVING sum(w.compute_ns + w.exposed_transfer_ns + w.exposed_wait_ns + w.exposed_memory_ns) > 0
    ),
    swept AS (
        SELECT
            g.run, g.rank, g.span, g.ts, g.launch_ts,
            max(g.ts + g.dur) OVER (
                PARTITION BY g.run, g.rank, g.span
                ORDER BY g.ts, g.dur, g.event_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS ended
        FROM gpu_ops AS g
        WHERE g.class <> 'sync' AND NOT g.is_suspect AND g.dur > 0 AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    -- Running sums over the gaps of a rank, which do not overlap.
    gaps AS MATERIALIZED (
        SELECT
            s.run, s.rank, s.span, s.ended, s.ts,
            sum(CASE WHEN s.launch_ts > s.ended THEN s.ts - s.ended ELSE 0 END) OVER so_far AS host,
            sum(CASE WHEN s.launch_ts <= s.ended THEN s.ts - s.ended ELSE 0 END) OVER so_far AS queued,
            sum(CASE WHEN s.launch_ts IS NULL THEN s.ts - s.ended ELSE 0 END) OVER so_far AS unlinked,
            count_if(s.launch_ts > s.ended) OVER so_far AS host_count,
            count_if(s.launch_ts <= s.ended) OVER so_far AS queued_count,
            count_if(s.launch_ts IS NULL) OVER so_far AS unlinked_count
        FROM swept AS s
        WHERE s.ts > s.ended
        WINDOW so_far AS (PARTITION BY s.run, s.rank, s.span ORDER BY s.ts ROWS UNBOUNDED PRECEDING)
    ),
    -- Gaps between two operations of a step lie strictly inside of it: up to the last that ends before it does, but for those
    -- up to the last that begins before it does. A gap that is longer than the step would be taken off: none is.
    inner_gaps AS (
        SELECT
            w.run, w.rank,
            greatest(0, coalesce(b.host, 0) - coalesce(a.host, 0)) AS host,
            greatest(0, coalesce(b.queued, 0) - coalesce(a.queued, 0)) AS queued,
            greatest(0, coalesce(b.unlinked, 0) - coalesce(a.unlinked, 0)) AS unlinked,
            greatest(0, coalesce(b.host_count, 0) - coalesce(a.host_count, 0)) AS host_count,
            greatest(0, coalesce(b.queued_count, 0) - coalesce(a.queued_count, 0)) AS queued_count,
            greatest(0, coalesce(b.unlinked_count, 0) - coalesce(a.unlinked_count, 0)) AS unlinked_count
        FROM windows AS w
        ASOF LEFT JOIN gaps AS b ON b.run = w.run AND b.rank = w.rank AND b.span = w.span AND w.end_ts > b.ts
        ASOF LEFT JOIN gaps AS a ON a.run = w.run AND a.rank = w.rank AND a.span = w.span AND w.ts >= a.ended
    ),
    causes AS (
        SELECT
            i.run, i.rank, sum(i.host)::BIGINT AS host, sum(i.queued)::BIGINT AS queued, sum(i.unlinked)::BIGINT AS unlinked,
            sum(i.host_count)::BIGINT AS host_count, sum(i.queued_count)::BIGINT AS queued_count, sum(i.unlinked_count)::BIGINT AS unlinked_count
        FROM inner_gaps AS i
        GROUP BY i.run, i.rank
    ),
    kernels AS (
        SELECT g.run, g.rank, g.name, count(*) AS events, sum(g.dur)::BIGINT AS ns
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.class = 'computation'
        GROUP BY ALL
    ),
    names AS (
        SELECT k.run, k.name, sum(k.ns) AS total
        FROM kernels AS k
        GROUP BY k.run, k.name
    ),
    longest AS (
        SELECT n.run, n.name
        FROM names AS n
        QUALIFY num_kernels IS NULL OR row_number() OVER (PARTITION BY n.run ORDER BY n.total DESC, n.name) <= num_kernels
    ),
    costs AS (
        SELECT t.run, t.rank, 'idle_before' AS cost, NULL::VARCHAR AS subject, t.idle_before AS ns, NULL::BIGINT AS events FROM times AS t
        UNION ALL
        SELECT t.run, t.rank, 'idle_after', NULL, t.idle_after, NULL FROM times AS t
        UNION ALL
        SELECT t.run, t.rank, 'exposed_transfer', NULL, t.transfer, NULL FROM times AS t
        UNION ALL
        SELECT t.run, t.rank, 'exposed_wait', NULL, t.wait, NULL FROM times AS t
        UNION ALL
        SELECT t.run, t.rank, 'exposed_memory', NULL, t.memory, NULL FROM times AS t
        UNION ALL
        SELECT c.run, c.rank, 'idle_host', NULL, c.host, c.host_count FROM causes AS c
        UNION ALL
        SELECT c.run, c.rank, 'idle_queued', NULL, c.queued, c.queued_count FROM causes AS c
        UNION ALL
        SELECT c.run, c.rank, 'idle_unknown', NULL, c.unlinked, c.unlinked_count FROM causes AS c
        UNION ALL
        SELECT k.run, k.rank, 'kernel', k.name, k.ns, k.events
        FROM kernels AS k
        JOIN longest AS l ON l.run = k.run AND l.name = k.name
    ),
    run_spans AS (
        SELECT t.run, sum(t.span) AS total
        FROM times AS t
        GROUP BY t.run
    ),
    totals AS (
        SELECT
            c.run,
            c.cost,
            c.subject,
            sum(c.ns)::BIGINT AS ns,
            sum(c.events)::BIGINT AS events,
            arg_min({'rank': c.rank, 'ns': c.ns, 'span': t.span}, {'ns': -c.ns, 'rank': c.rank}) AS worst
        FROM costs AS c
        JOIN times AS t ON t.run = c.run AND t.rank = c.rank
        GROUP BY c.run, c.cost, c.subject
        HAVING sum(c.ns) > 0
    ),
    late AS (
        SELECT j.run, string_agg(j.rank::VARCHAR, ', ' ORDER BY j.rank) AS ranks, count(*) AS n
        FROM lib.late_ranks(runs, 1.0) AS j
        WHERE j.is_late
        GROUP BY j.run
    ),
    described AS (
        SELECT
            t.*,
            CASE t.cost
                WHEN 'idle_before' THEN lib.message('top_costs.idle_before', NULL)
                WHEN 'idle_after' THEN lib.message('top_costs.idle_after', NULL)
                WHEN 'idle_host' THEN lib.message('top_costs.idle_host', NULL)
                WHEN 'idle_queued' THEN lib.message('top_costs.idle_queued', NULL)
                WHEN 'idle_unknown' THEN lib.message('top_costs.idle_unknown', NULL)
                WHEN 'exposed_transfer' THEN lib.message('top_costs.exposed_transfer', NULL)
                WHEN 'exposed_wait' THEN
                    CASE
                        WHEN l.n > 0 THEN lib.message('top_costs.exposed_wait', {'rank_count': l.n, 'ranks': l.ranks})
                        ELSE lib.message('top_costs.exposed_wait_without_straggler', NULL)
                    END
                WHEN 'exposed_memory' THEN lib.message('top_costs.exposed_memory', NULL)
                ELSE lib.message('top_costs.kernel', NULL)
            END AS message
        FROM totals AS t
        LEFT JOIN late AS l ON l.run = t.run
    )
SELECT
    t.run,
    row_number() OVER (PARTITION BY t.run ORDER BY t.ns DESC, t.cost, t.subject) AS position,
    t.cost,
    t.subject,
    t.ns AS cost_ns,
    100::DOUBLE * t.ns / s.total AS cost_pct,
    t.events AS event_count,
    t.worst.rank AS worst_rank,
    t.worst.ns AS worst_rank_ns,
    100::DOUBLE * t.worst.ns / t.worst.span AS worst_rank_pct,
    t.message.code AS message_code,
    lib.message_text(m.message, t.message.fields) AS message,
    CASE t.cost
        WHEN 'exposed_transfer' THEN 'collective_waits'
        WHEN 'exposed_wait' THEN 'stragglers'
        WHEN 'kernel' THEN 'kernels_across_ranks'
        WHEN 'exposed_memory' THEN 'step_accounting'
        ELSE 'idle_causes'
    END AS next_analysis
FROM described AS t
JOIN run_spans AS s ON s.run = t.run
LEFT JOIN messages AS m ON m.code = t.message.code
ORDER BY t.run, position
