-- Largest costs in step time: idle GPUs by cause, exposed communication, waits for other ranks, exposed copies, kernels.
--
-- Step time is the duration of host steps, summed over all ranks. cost_pct is a share of its recorded part, for the cost
-- unrecorded of all of it; share_of says which. Idle, unrecorded and exposed times are mutually exclusive, as in
-- `step_accounting`. Idle time is split as in `idle_causes`. A gap is idle_host until the host has launched the
-- operation that ends it, or throughout if no operation follows. The rest of the gap is idle_queued. A gap is
-- idle_unknown if the launch of that operation is not in the trace. Unrecorded time, in which the device ran work that
-- is not in the trace, is neither idle time nor a cost of the host. Kernels are the num_kernels computation kernels with
-- the longest total duration; concurrent kernels on two streams both count. Costs of zero have no row.
--
-- Title: What costs the most
-- Shown: cost_ns, cost_pct, cost, worst_rank, short_name, message, share_of, next_analysis, position
-- Also: bottleneck, hotspots, summary, overview, what is slow
-- Status: stable
-- Since: 0.1
-- Reference: none; the first question about any trace
-- Needs: GPU activity
CREATE OR REPLACE MACRO top_costs_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Number of kernels per run; NULL means every kernel.
    num_kernels BIGINT := 3
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   position        BIGINT [1]      Position by cost in the run; 1 is the highest.
--   cost            VARCHAR         idle_host, idle_queued, idle_unknown, unrecorded, exposed_transfer, exposed_unmatched, exposed_wait, exposed_memory or kernel.
--   subject         VARCHAR         Name of the kernel; NULL for other costs.
--   short_name      VARCHAR         Name without template arguments, parameters and return type; several kernels of the run with the same name also show the arguments in which they differ.
--   cost_ns         BIGINT [ns]     Cost on all ranks.
--   cost_pct        DOUBLE [%]      cost_ns as a share of the time in share_of, on all ranks of the run.
--   share_of        VARCHAR         Time of which cost_pct and worst_rank_pct are shares: step time, capture (a trace without steps), or recorded (the recorded part of either, if it is not all).
--   event_count     BIGINT [count]  Number of gaps, or of launches of the kernel; NULL for other costs.
--   worst_rank      INTEGER         Rank with the highest cost; the lowest rank if several are equal. For waits, the rank that waits the longest.
--   worst_rank_ns   BIGINT [ns]     Cost on that rank.
--   worst_rank_pct  DOUBLE [%]      worst_rank_ns as a share of the time in share_of on that rank.
--   message_code    VARCHAR         Code of the message in the table messages.
--   message         VARCHAR         Explanation; for waits, also the awaited rank.
--   next_analysis   VARCHAR         Analysis that shows more.
WITH
    windows AS MATERIALIZED (
        SELECT p.*
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
    ),
    -- Exclude ranks without device activity, which have no GPU that could be idle.
    times AS MATERIALIZED (
        SELECT
            w.run, w.rank, bool_or(w.step IS NOT NULL) AS has_steps, sum(w.step_ns)::BIGINT AS step_ns, sum(w.recorded_ns)::BIGINT AS recorded_ns,
            sum(w.exposed_transfer_ns)::BIGINT AS transfer, sum(w.exposed_unmatched_ns)::BIGINT AS unmatched, sum(w.exposed_wait_ns)::BIGINT AS wait, sum(w.exposed_memory_ns)::BIGINT AS memory
        FROM windows AS w
        GROUP BY w.run, w.rank
        HAVING sum(w.compute_ns + w.exposed_transfer_ns + w.exposed_unmatched_ns + w.exposed_wait_ns + w.exposed_memory_ns) > 0
    ),
    -- A gap across a step boundary counts once per step, and its time in overlapping steps counts once per step too.
    gaps AS (
        SELECT i.run, i.rank, i.waits_for, unnest(i.in_steps) AS step, i.dur
        FROM lib.idle_parts(runs, ranks, steps, include_last_profiler_step) AS i
    ),
    causes AS (
        SELECT
            g.run, g.rank,
            CASE g.waits_for WHEN 'host' THEN 'idle_host' WHEN 'device' THEN 'idle_queued' WHEN 'unrecorded' THEN 'unrecorded' ELSE 'idle_unknown' END AS cost,
            sum(g.dur)::BIGINT AS ns, count(*) AS events
        FROM gaps AS g
        GROUP BY g.run, g.rank, g.waits_for
    ),
    kernels AS (
        SELECT g.run, g.rank, g.name, count(*) AS events, sum(g.dur)::BIGINT AS ns
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.class = 'computation'
        GROUP BY ALL
    ),
    names AS MATERIALIZED (
        SELECT k.run, k.name, sum(k.ns) AS total
        FROM kernels AS k
        GROUP BY k.run, k.name
    ),
    longest AS (
        SELECT n.run, n.name
        FROM names AS n
        QUALIFY num_kernels IS NULL OR row_number() OVER (PARTITION BY n.run ORDER BY n.total DESC, n.name) <= num_kernels
    ),
    -- Names of the whole run, so that a kernel has one short name in all ranks and steps.
    kernel_names AS (
        SELECT DISTINCT g.run, g.name FROM gpu_ops AS g WHERE lib.is_requested(runs, g.run)
    ),
    short AS (
        SELECT n.* FROM lib.distinct_short_names('kernel_names') AS n
    ),
    costs AS (
        SELECT t.run, t.rank, 'exposed_transfer' AS cost, NULL::VARCHAR AS subject, t.transfer AS ns, NULL::BIGINT AS events FROM times AS t
        UNION ALL
        SELECT t.run, t.rank, 'exposed_unmatched', NULL, t.unmatched, NULL FROM times AS t
        UNION ALL
        SELECT t.run, t.rank, 'exposed_wait', NULL, t.wait, NULL FROM times AS t
        UNION ALL
        SELECT t.run, t.rank, 'exposed_memory', NULL, t.memory, NULL FROM times AS t
        UNION ALL
        SELECT c.run, c.rank, c.cost, NULL, c.ns, c.events FROM causes AS c
        UNION ALL
        SELECT k.run, k.rank, 'kernel', k.name, k.ns, k.events
        FROM kernels AS k
        JOIN longest AS l ON l.run = k.run AND l.name = k.name
    ),
    run_spans AS (
        SELECT t.run, bool_or(t.has_steps) AS has_steps, sum(t.step_ns) AS step_ns, sum(t.recorded_ns) AS recorded_ns
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
            arg_min({'rank': c.rank, 'ns': c.ns, 'span': CASE c.cost WHEN 'unrecorded' THEN t.step_ns ELSE t.recorded_ns END}, {'ns': -c.ns, 'rank': c.rank}) AS worst
        FROM costs AS c
        JOIN times AS t ON t.run = c.run AND t.rank = c.rank
        GROUP BY c.run, c.cost, c.subject
        HAVING sum(c.ns) > 0
    ),
    late AS (
        SELECT
            j.run,
            string_agg(j.rank::VARCHAR, ', ' ORDER BY j.rank) FILTER (j.is_late) AS ranks, count_if(j.is_late) AS n,
            string_agg(j.rank::VARCHAR, ', ' ORDER BY j.rank) FILTER (j.verdict IN ('intermittent', 'suspected')) AS possible_ranks,
            count_if(j.verdict IN ('intermittent', 'suspected')) AS possible_count,
            count_if(j.verdict = 'unknown') AS unknown_count, count(*) AS rank_count
        FROM lib.rank_verdicts(runs) AS j
        GROUP BY j.run
    ),
    described AS (
        SELECT
            t.*,
            CASE t.cost
                WHEN 'idle_host' THEN lib.message('top_costs.idle_host', NULL)
                WHEN 'idle_queued' THEN lib.message('top_costs.idle_queued', NULL)
                WHEN 'idle_unknown' THEN lib.message('top_costs.idle_unknown', NULL)
                WHEN 'unrecorded' THEN lib.message('top_costs.unrecorded', NULL)
                WHEN 'exposed_transfer' THEN lib.message('top_costs.exposed_transfer', NULL)
                WHEN 'exposed_unmatched' THEN lib.message('top_costs.exposed_unmatched', NULL)
                WHEN 'exposed_wait' THEN
                    CASE
                        WHEN l.n > 0 THEN lib.message('top_costs.exposed_wait', {'rank_count': l.n, 'ranks': l.ranks})
                        WHEN l.possible_count > 0
                            THEN lib.message('top_costs.exposed_wait_possible_straggler', {'rank_count': l.possible_count, 'ranks': l.possible_ranks})
                        WHEN 2 * l.unknown_count > l.rank_count
                            THEN lib.message('top_costs.exposed_wait_unknown', {'unknown_count': l.unknown_count, 'rank_count': l.rank_count})
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
    n.short_name,
    t.ns AS cost_ns,
    100::DOUBLE * t.ns / CASE t.cost WHEN 'unrecorded' THEN s.step_ns ELSE s.recorded_ns END AS cost_pct,
    CASE WHEN t.cost <> 'unrecorded' AND s.recorded_ns < s.step_ns THEN 'recorded' WHEN s.has_steps THEN 'step time' ELSE 'capture' END AS share_of,
    t.events AS event_count,
    t.worst.rank AS worst_rank,
    t.worst.ns AS worst_rank_ns,
    100::DOUBLE * t.worst.ns / t.worst.span AS worst_rank_pct,
    t.message.code AS message_code,
    lib.message_text(m.message, t.message.fields) AS message,
    CASE t.cost
        WHEN 'exposed_transfer' THEN 'collective_waits'
        WHEN 'exposed_unmatched' THEN 'collectives'
        WHEN 'exposed_wait' THEN 'stragglers'
        WHEN 'kernel' THEN 'kernels_across_ranks'
        WHEN 'exposed_memory' THEN 'step_accounting'
        ELSE 'idle_causes'
    END AS next_analysis
FROM described AS t
JOIN run_spans AS s ON s.run = t.run
LEFT JOIN short AS n ON n.run = t.run AND n.name = t.subject
LEFT JOIN messages AS m ON m.code = t.message.code
ORDER BY t.run, position
