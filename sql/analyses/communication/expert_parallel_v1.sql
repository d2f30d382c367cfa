-- Token exchanges between expert-parallel ranks: dispatch, combine and their preparation, by library.
--
-- Kernels of DeepEP, MoRI, pplx, TensorRT-LLM and others are recognized by name (`gpu_ops.comm_role`; the source of
-- each is in sql/ingest/kernel_classes.csv). A call with a receive hook consists of two kernels of the same name: the
-- first sends, the second receives. The transfer happens between them, while no kernel runs. Calls of a low-latency
-- library are treated this way if runs of consecutive dispatches, and of combines, have even length in nine of ten
-- cases.
--
-- The n-th call of a role is one exchange across all ranks in the store, provided that all made the same number of
-- calls. Time that a rank takes beyond the fastest rank is a wait: for a straggler, or for the rank with the most
-- tokens.
--
-- Title: Expert-parallel exchanges
-- Shown: rank, comm_library, comm_role, total_ns, overlap_pct, exposed_ns, wait_ns, call_count
-- Status: experimental
-- Since: 0.1
-- Reference: DeepEP (deepseek-ai/DeepEP), low-latency kernels with receive hooks
-- Needs: kernels of an expert-parallel library
CREATE OR REPLACE MACRO expert_parallel_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   comm_library     VARCHAR         Name of the library.
--   comm_role        VARCHAR         dispatch, combine, notify (counts, layouts, barriers) or exchange (either).
--   half             VARCHAR         send or receive for a call made of two kernels, otherwise whole.
--   call_count       BIGINT [count]  Number of kernels.
--   total_ns         BIGINT [ns]     Total duration of the kernels.
--   overlapped_ns    BIGINT [ns]     Part of total_ns overlapped by compute.
--   exposed_ns       BIGINT [ns]     Part of total_ns not overlapped by compute.
--   overlap_pct      DOUBLE [%]      overlapped_ns as a share of total_ns.
--   transfer_ns      BIGINT [ns]     Part of total_ns up to the duration of the fastest rank; NULL with one rank, or if calls cannot be matched.
--   wait_ns          BIGINT [ns]     Remainder of total_ns; NULL if transfer_ns is.
--   median_ns        BIGINT [ns]     Median duration of a call.
--   hidden_ns        BIGINT [ns]     Median time between the end of a send and its receive, when the transfer needs no kernel; NULL for whole calls.
--   block_count      BIGINT [count]  Median number of thread blocks per call: multiprocessors not available for compute.
WITH
    calls AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.span, g.event_id, g.ts, g.dur, g.step, g.in_last_step, g.comm_library, g.comm_role, g.name,
            g.grid_x * g.grid_y * g.grid_z AS block_count,
            row_number() OVER (PARTITION BY g.run, g.rank, g.comm_library, g.comm_role ORDER BY g.ts, g.event_id) AS position,
            count(*) OVER (PARTITION BY g.run, g.rank, g.comm_library, g.comm_role) AS call_count
        FROM gpu_ops AS g
        WHERE g.comm_role IS NOT NULL AND NOT g.is_suspect AND lib.is_requested(runs, g.run)
    ),
    -- Runs of consecutive dispatches or combines: D D C C has two runs, D C D C has four.
    turns AS (
        SELECT
            c.run, c.rank, c.comm_library, c.ts, c.event_id, contains(c.name, 'internode_ll') AS is_low_latency,
            c.comm_role IS DISTINCT FROM lag(c.comm_role) OVER (PARTITION BY c.run, c.rank, c.comm_library ORDER BY c.ts, c.event_id) AS is_first
        FROM calls AS c
        WHERE c.comm_role IN ('dispatch', 'combine')
    ),
    numbered AS (
        SELECT t.*, count_if(t.is_first) OVER (PARTITION BY t.run, t.rank, t.comm_library ORDER BY t.ts, t.event_id ROWS UNBOUNDED PRECEDING) AS series
        FROM turns AS t
    ),
    series AS (
        SELECT n.run, n.rank, n.comm_library, n.series, count(*) % 2 = 0 AS is_even, bool_and(n.is_low_latency) AS is_low_latency
        FROM numbered AS n
        GROUP BY n.run, n.rank, n.comm_library, n.series
    ),
    halved AS (
        SELECT s.run, s.rank, s.comm_library
        FROM series AS s
        GROUP BY s.run, s.rank, s.comm_library
        HAVING bool_and(s.is_low_latency) AND count_if(s.is_even) >= 0.9 * count(*)
    ),
    halves AS (
        SELECT
            c.*,
            CASE
                WHEN regexp_matches(c.name, '(dispatch|combine)\w*send', 'i') THEN 'send'
                WHEN regexp_matches(c.name, '(dispatch|combine)\w*recv', 'i') THEN 'receive'
                WHEN h.run IS NULL OR c.comm_role NOT IN ('dispatch', 'combine') THEN 'whole'
                WHEN c.position % 2 = 1 THEN 'send'
                ELSE 'receive'
            END AS half,
            c.ts - lag(c.ts + c.dur) OVER (PARTITION BY c.run, c.rank, c.comm_library, c.comm_role ORDER BY c.ts, c.event_id) AS since_ns
        FROM calls AS c
        LEFT JOIN halved AS h ON h.run = c.run AND h.rank = c.rank AND h.comm_library = c.comm_library
    ),
    exchanges AS (
        SELECT
            h.run, h.comm_library, h.comm_role, h.position,
            CASE
                WHEN count(*) = any_value(k.rank_count) AND count(*) > 1 AND min(h.call_count) = max(h.call_count) THEN min(h.dur)
            END AS fastest_ns
        FROM halves AS h
        JOIN (SELECT r.run, count(DISTINCT r.rank) AS rank_count FROM ranks AS r GROUP BY r.run) AS k ON k.run = h.run
        GROUP BY h.run, h.comm_library, h.comm_role, h.position
    ),
    scoped AS MATERIALIZED (
        SELECT h.*, e.fastest_ns
        FROM halves AS h
        JOIN exchanges AS e ON e.run = h.run AND e.comm_library = h.comm_library AND e.comm_role = h.comm_role AND e.position = h.position
        WHERE lib.is_requested(ranks, h.rank) AND lib.is_requested(steps, h.step) AND (include_last_profiler_step OR NOT h.in_last_step)
    ),
    computing AS (
        SELECT {'run': g.run, 'rank': g.rank} AS lane, g.ts, g.dur
        FROM gpu_ops AS g
        WHERE g.class = 'computation' AND NOT g.is_suspect AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    busy AS (
        SELECT b.lane.run AS run, b.lane.rank AS rank, b.ts, b.dur, sum(b.dur) OVER (PARTITION BY b.lane ORDER BY b.ts ROWS UNBOUNDED PRECEDING) - b.dur AS earlier_ns
        FROM lib.merged_intervals('computing') AS b
    ),
    bounds AS (
        SELECT s.run, s.rank, s.event_id, unnest([s.ts, s.ts + s.dur]) AS at_ts, unnest([-1, 1]) AS factor
        FROM scoped AS s
    ),
    hidden AS (
        SELECT o.run, o.rank, o.event_id, sum(o.factor * coalesce(b.earlier_ns + least(o.at_ts - b.ts, b.dur), 0))::BIGINT AS overlapped_ns
        FROM bounds AS o
        ASOF LEFT JOIN busy AS b ON b.run = o.run AND b.rank = o.rank AND o.at_ts >= b.ts
        GROUP BY o.run, o.rank, o.event_id
    )
SELECT
    s.run,
    s.rank,
    s.comm_library,
    s.comm_role,
    s.half,
    count(*) AS call_count,
    sum(s.dur)::BIGINT AS total_ns,
    sum(o.overlapped_ns)::BIGINT AS overlapped_ns,
    sum(s.dur - o.overlapped_ns)::BIGINT AS exposed_ns,
    100 * sum(o.overlapped_ns) / nullif(sum(s.dur), 0) AS overlap_pct,
    CASE WHEN count(s.fastest_ns) = count(*) THEN sum(s.fastest_ns)::BIGINT END AS transfer_ns,
    CASE WHEN count(s.fastest_ns) = count(*) THEN sum(s.dur - s.fastest_ns)::BIGINT END AS wait_ns,
    round(median(s.dur))::BIGINT AS median_ns,
    round(median(s.since_ns) FILTER (s.half = 'receive'))::BIGINT AS hidden_ns,
    round(median(s.block_count))::BIGINT AS block_count
FROM scoped AS s
JOIN hidden AS o ON o.run = s.run AND o.rank = s.rank AND o.event_id = s.event_id
GROUP BY s.run, s.rank, s.comm_library, s.comm_role, s.half
ORDER BY s.run, s.rank, s.comm_library, s.comm_role, s.half DESC
