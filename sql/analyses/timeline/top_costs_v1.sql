-- What GPU time goes to, longest first: idle time by cause, exposed communication and copies, kernels.
--
-- GPU time of a run is the sum of its ranks' spans, from the first start to the last end. A GPU is
-- idle where nothing runs on any stream: idle_host where the host launched the operation that ends
-- the gap only after everything before it had ended, idle_queued where it was launched before,
-- idle_unknown where its launch is not in the trace. These and exposed_communication and
-- exposed_memory exclude each other. Kernels are the longest of the class computation by the sum of
-- their durations, so that kernels of two streams at once count twice. What costs nothing has no row.
--
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
--   place           BIGINT [1]      1 for the highest cost of the run.
--   cost            VARCHAR         idle_host, idle_queued, idle_unknown, exposed_communication, exposed_memory or kernel.
--   subject         VARCHAR         Name of the kernel; NULL for other costs.
--   cost_ns         BIGINT [ns]     On all ranks.
--   cost_pct        DOUBLE [%]      Share of the GPU time of the run.
--   event_count     BIGINT [count]  Gaps, or launches of the kernel; NULL for other costs.
--   worst_rank      INTEGER         Rank with the highest cost; of equal ones the lowest.
--   worst_rank_ns   BIGINT [ns]     Its cost.
--   worst_rank_pct  DOUBLE [%]      Share of that rank's own span.
--   message         VARCHAR         What it means.
--   look_at         VARCHAR         Analysis that shows more.
WITH
    ops AS (
        SELECT g.run, g.rank, g.class, g.name, g.ts, g.dur, g.launch_ts, g.event_id
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
    ),
    spans AS (
        SELECT {'run': o.run, 'rank': o.rank} AS lane, o.class, o.ts, o.dur
        FROM ops AS o
    ),
    times AS (
        SELECT
            c.lane,
            sum(c.dur)::BIGINT AS span,
            coalesce(sum(c.dur) FILTER (c.communicates AND NOT c.computes), 0)::BIGINT AS communication,
            coalesce(sum(c.dur) FILTER (c.copies AND NOT c.computes AND NOT c.communicates), 0)::BIGINT AS memory
        FROM lib.class_segments('spans') AS c
        GROUP BY c.lane
    ),
    followed AS (
        SELECT
            o.*,
            max(o.ts + o.dur) OVER (
                PARTITION BY o.run, o.rank
                ORDER BY o.ts, o.dur, o.event_id
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS ended
        FROM ops AS o
    ),
    idle AS (
        SELECT
            f.run,
            f.rank,
            CASE
                WHEN f.launch_ts IS NULL THEN 'idle_unknown'
                WHEN f.launch_ts > f.ended THEN 'idle_host'
                ELSE 'idle_queued'
            END AS cost,
            count(*) AS events,
            sum(f.ts - f.ended)::BIGINT AS ns
        FROM followed AS f
        WHERE f.ts > f.ended
        GROUP BY ALL
    ),
    kernels AS (
        SELECT o.run, o.rank, o.name, count(*) AS events, sum(o.dur)::BIGINT AS ns
        FROM ops AS o
        WHERE o.class = 'computation'
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
        SELECT t.lane.run AS run, t.lane.rank AS rank, 'exposed_communication' AS cost, NULL::VARCHAR AS subject, t.communication AS ns, NULL::BIGINT AS events
        FROM times AS t
        UNION ALL
        SELECT t.lane.run, t.lane.rank, 'exposed_memory', NULL, t.memory, NULL
        FROM times AS t
        UNION ALL
        SELECT i.run, i.rank, i.cost, NULL, i.ns, i.events
        FROM idle AS i
        UNION ALL
        SELECT k.run, k.rank, 'kernel', k.name, k.ns, k.events
        FROM kernels AS k
        JOIN longest AS l ON l.run = k.run AND l.name = k.name
    ),
    run_spans AS (
        SELECT t.lane.run AS run, sum(t.span) AS total
        FROM times AS t
        GROUP BY t.lane.run
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
        JOIN times AS t ON t.lane = {'run': c.run, 'rank': c.rank}
        GROUP BY c.run, c.cost, c.subject
        HAVING sum(c.ns) > 0
    )
SELECT
    t.run,
    row_number() OVER (PARTITION BY t.run ORDER BY t.ns DESC, t.cost, t.subject) AS place,
    t.cost,
    t.subject,
    t.ns AS cost_ns,
    100::DOUBLE * t.ns / s.total AS cost_pct,
    t.events AS event_count,
    t.worst.rank AS worst_rank,
    t.worst.ns AS worst_rank_ns,
    100::DOUBLE * t.worst.ns / t.worst.span AS worst_rank_pct,
    CASE t.cost
        WHEN 'idle_host' THEN 'GPUs wait for the host: it launches the next operation only after everything before it has ended.'
        WHEN 'idle_queued' THEN 'GPUs wait although the next operation is in the queue: for another stream, an event, or the launch itself.'
        WHEN 'idle_unknown' THEN 'GPUs are idle, and the launch of the next operation is not in the trace.'
        WHEN 'exposed_communication' THEN 'Communication that no computation hides.'
        WHEN 'exposed_memory' THEN 'Copies and memsets that neither computation nor communication hides.'
        ELSE 'One of the longest kernels.'
    END AS message,
    CASE t.cost
        WHEN 'exposed_communication' THEN 'comm_comp_overlap'
        WHEN 'exposed_memory' THEN 'temporal_breakdown'
        WHEN 'kernel' THEN 'kernels_across_ranks'
        ELSE 'idle_time_breakdown'
    END AS look_at
FROM totals AS t
JOIN run_spans AS s ON s.run = t.run
ORDER BY t.run, place
