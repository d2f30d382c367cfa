-- Kernels of expert-parallel libraries, call by call, with the half of the call that the kernel runs, the duration on
-- the fastest rank, and the overlap with computation.
--
-- The rules are those of `expert_parallel`, which sums these calls.
CREATE OR REPLACE MACRO lib.expert_calls(
    runs,
    ranks,
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   event_id       BIGINT          event_id of the kernel.
--   comm_library   VARCHAR         Library.
--   comm_role      VARCHAR         dispatch, combine, notify or exchange.
--   half           VARCHAR         send or receive if the call has two kernels, otherwise whole.
--   dur            BIGINT [ns]     Duration.
--   fastest_ns     BIGINT [ns]     Duration on the fastest rank; NULL for a single rank, or if calls cannot be matched.
--   overlapped_ns  BIGINT [ns]     Part of dur during which the rank computes.
--   since_ns       BIGINT [ns]     Time since the end of the previous call of the same role.
--   block_count    BIGINT [count]  Number of thread blocks; NULL if the recorded grid is beyond any device.
WITH
    _calls AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.span, g.event_id, g.ts, g.dur, g.step, g.in_last_step, g.comm_library, g.comm_role, g.name,
            TRY_CAST(g.grid_x::HUGEINT * g.grid_y * g.grid_z AS BIGINT) AS block_count,
            row_number() OVER (PARTITION BY g.run, g.rank, g.comm_library, g.comm_role ORDER BY g.ts, g.event_id) AS position,
            count(*) OVER (PARTITION BY g.run, g.rank, g.comm_library, g.comm_role) AS call_count
        FROM gpu_ops AS g
        WHERE g.comm_role IS NOT NULL AND NOT g.is_suspect AND lib.is_requested(runs, g.run)
    ),
    -- Series of consecutive dispatches or combines: D D C C has two series, D C D C has four.
    _turns AS (
        SELECT
            c.run, c.rank, c.comm_library, c.ts, c.event_id, contains(c.name, 'internode_ll') AS is_low_latency,
            c.comm_role IS DISTINCT FROM lag(c.comm_role) OVER (PARTITION BY c.run, c.rank, c.comm_library ORDER BY c.ts, c.event_id) AS is_first
        FROM _calls AS c
        WHERE c.comm_role IN ('dispatch', 'combine')
    ),
    _numbered AS (
        SELECT t.*, count_if(t.is_first) OVER (PARTITION BY t.run, t.rank, t.comm_library ORDER BY t.ts, t.event_id ROWS UNBOUNDED PRECEDING) AS series
        FROM _turns AS t
    ),
    _series AS (
        SELECT n.run, n.rank, n.comm_library, n.series, count(*) % 2 = 0 AS is_even, bool_and(n.is_low_latency) AS is_low_latency
        FROM _numbered AS n
        GROUP BY n.run, n.rank, n.comm_library, n.series
    ),
    _halved AS (
        SELECT s.run, s.rank, s.comm_library
        FROM _series AS s
        GROUP BY s.run, s.rank, s.comm_library
        HAVING bool_and(s.is_low_latency) AND count_if(s.is_even) >= 0.9 * count(*)
    ),
    _halves AS (
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
        FROM _calls AS c
        LEFT JOIN _halved AS h ON h.run = c.run AND h.rank = c.rank AND h.comm_library = c.comm_library
    ),
    _exchanges AS (
        SELECT
            h.run, h.comm_library, h.comm_role, h.position,
            CASE
                WHEN count(*) = any_value(k.rank_count) AND count(*) > 1 AND min(h.call_count) = max(h.call_count) THEN min(h.dur)
            END AS fastest_ns
        FROM _halves AS h
        JOIN (SELECT r.run, count(DISTINCT r.rank) AS rank_count FROM ranks AS r GROUP BY r.run) AS k ON k.run = h.run
        GROUP BY h.run, h.comm_library, h.comm_role, h.position
    ),
    _scoped AS MATERIALIZED (
        SELECT h.*, e.fastest_ns
        FROM _halves AS h
        JOIN _exchanges AS e ON e.run = h.run AND e.comm_library = h.comm_library AND e.comm_role = h.comm_role AND e.position = h.position
        WHERE lib.is_requested(ranks, h.rank) AND lib.is_requested(steps, h.step) AND (include_last_profiler_step OR NOT h.in_last_step)
    ),
    _computing AS (
        SELECT {'run': g.run, 'rank': g.rank} AS lane, g.ts, g.dur
        FROM gpu_ops AS g
        WHERE g.class = 'computation' AND NOT g.is_suspect AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    _busy AS (
        SELECT b.lane.run AS run, b.lane.rank AS rank, b.ts, b.dur, sum(b.dur) OVER (PARTITION BY b.lane ORDER BY b.ts ROWS UNBOUNDED PRECEDING) - b.dur AS earlier_ns
        FROM lib.merged_intervals('_computing') AS b
    ),
    _bounds AS (
        SELECT s.run, s.rank, s.event_id, unnest([s.ts, s.ts + s.dur]) AS at_ts, unnest([-1, 1]) AS factor
        FROM _scoped AS s
    ),
    _hidden AS (
        SELECT o.run, o.rank, o.event_id, sum(o.factor * coalesce(b.earlier_ns + least(o.at_ts - b.ts, b.dur), 0))::BIGINT AS overlapped_ns
        FROM _bounds AS o
        ASOF LEFT JOIN _busy AS b ON b.run = o.run AND b.rank = o.rank AND o.at_ts >= b.ts
        GROUP BY o.run, o.rank, o.event_id
    )
SELECT
    s.run AS run, s.rank AS rank, s.event_id AS event_id, s.comm_library AS comm_library, s.comm_role AS comm_role, s.half AS half,
    s.dur AS dur, s.fastest_ns AS fastest_ns, o.overlapped_ns AS overlapped_ns, s.since_ns AS since_ns, s.block_count AS block_count
FROM _scoped AS s
JOIN _hidden AS o ON o.run = s.run AND o.rank = s.rank AND o.event_id = s.event_id
