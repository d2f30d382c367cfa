-- Why ranks are late: what each does more than the ranks that it meets, in the window that all have in common.
--
-- The window is as long on every rank, so that what a late rank waits less it computes, copies or idles
-- more. It is compared with the mean of at most eight ranks that share its groups and are not late. More
-- computation is split exactly: longer calls (of kernels with the same name, grid and block), and more work (more
-- calls, other grids). More idle time goes to what the host ran by itself meanwhile: the name with most
-- own time more, or an annotation of data loading where that explains half of it.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib._lateness_causes(
    -- Name of a relation with run, rank, is_late and excess_ns.
    judged_items
) AS TABLE
-- Columns:
--   run            VARCHAR      Run name.
--   rank           INTEGER      Late rank.
--   cause          VARCHAR      slower compute, throttling, more compute, host-bound, data loading, copies; NULL: unknown.
--   cause_ns       BIGINT [ns]  How much more of that it does in the common window.
--   subject        VARCHAR      Operator, kernel or annotation that differs most.
--   subject_ns     BIGINT [ns]  How much more that takes.
--   kernel         VARCHAR      Kernel that differs most, where the device computes longer.
--   slowdown       DOUBLE [1]   Length of its kernels over that of the same calls elsewhere.
--   first_third    DOUBLE [1]   The same in the first third of the window.
--   last_third     DOUBLE [1]   The same in the last third.
--   uniform_share  DOUBLE [1]   Share of its computation that is slowed down at least half as much.
--   window_ns      BIGINT [ns]  Length of the window.
--   cost_ns        BIGINT [ns]  Exposed wait in it that the others have more: what they would gain at most.
WITH
    _late AS MATERIALIZED (
        SELECT j.run, j.rank FROM query_table(judged_items) AS j WHERE j.is_late
    ),
    _groups AS (
        SELECT DISTINCT m.run, m.channel_id, m.rank
        FROM matched_collectives AS m
        WHERE m.is_complete AND NOT m.is_p2p AND m.run IN (SELECT l.run FROM _late AS l)
    ),
    _met AS (
        SELECT DISTINCT a.run, a.rank, b.rank AS other
        FROM _groups AS a
        JOIN _late AS l ON l.run = a.run AND l.rank = a.rank
        JOIN _groups AS b ON b.run = a.run AND b.channel_id = a.channel_id AND b.rank <> a.rank
    ),
    -- Whom to compare with: not late, met before not met, as usual as can be.
    _pairs AS MATERIALIZED (
        SELECT l.run, l.rank, j.rank AS other
        FROM _late AS l
        JOIN query_table(judged_items) AS j ON j.run = l.run AND NOT j.is_late
        LEFT JOIN _met AS m ON m.run = l.run AND m.rank = l.rank AND m.other = j.rank
        QUALIFY
            row_number() OVER (
                PARTITION BY l.run, l.rank ORDER BY m.other IS NULL, abs(j.excess_ns), j.rank
            ) <= 8
    ),
    _windows AS MATERIALIZED (
        SELECT p.*, p.ts + p.step_ns AS end_ts
        FROM step_parts AS p
        WHERE
            p.is_common
            AND (EXISTS (FROM _late AS l WHERE l.run = p.run AND l.rank = p.rank)
                OR EXISTS (FROM _pairs AS o WHERE o.run = p.run AND o.other = p.rank))
    ),
    -- A rank that was recorded several times has as many windows.
    _sums AS MATERIALIZED (
        SELECT
            w.run, w.rank, sum(w.step_ns)::BIGINT AS step_ns, sum(w.compute_ns)::BIGINT AS compute_ns,
            sum(w.exposed_memory_ns)::BIGINT AS exposed_memory_ns, sum(w.exposed_wait_ns)::BIGINT AS exposed_wait_ns,
            sum(w.idle_before_ns + w.idle_between_ns + w.idle_after_ns)::BIGINT AS idle_ns
        FROM _windows AS w
        GROUP BY w.run, w.rank
    ),
    _usual AS (
        SELECT
            o.run, o.rank, count(*) AS other_count,
            round(avg(w.compute_ns))::BIGINT AS compute_ns, round(avg(w.exposed_memory_ns))::BIGINT AS memory_ns,
            round(avg(w.idle_ns))::BIGINT AS idle_ns, median(w.exposed_wait_ns)::BIGINT AS wait_ns
        FROM _pairs AS o
        JOIN _sums AS w ON w.run = o.run AND w.rank = o.other
        GROUP BY o.run, o.rank
    ),
    _chief AS MATERIALIZED (
        SELECT
            l.run, l.rank, w.step_ns, u.other_count,
            w.compute_ns - u.compute_ns AS compute_ns,
            w.exposed_memory_ns - u.memory_ns AS memory_ns,
            w.idle_ns - u.idle_ns AS idle_ns,
            u.wait_ns - w.exposed_wait_ns AS cost_ns,
            CASE
                WHEN greatest(w.compute_ns - u.compute_ns, w.exposed_memory_ns - u.memory_ns, w.idle_ns - u.idle_ns) <= 0 THEN NULL
                WHEN w.compute_ns - u.compute_ns >= greatest(w.exposed_memory_ns - u.memory_ns, w.idle_ns - u.idle_ns) THEN 'compute'
                WHEN w.idle_ns - u.idle_ns >= w.exposed_memory_ns - u.memory_ns THEN 'idle'
                ELSE 'memory'
            END AS part
        FROM _late AS l
        JOIN _sums AS w ON w.run = l.run AND w.rank = l.rank
        JOIN _usual AS u ON u.run = l.run AND u.rank = l.rank
    ),
    -- Each late rank beside those that it is compared with.
    _compared AS MATERIALIZED (
        SELECT c.run, c.rank AS late_rank, c.rank, c.part, w.ts, w.end_ts
        FROM _chief AS c
        JOIN _windows AS w ON w.run = c.run AND w.rank = c.rank
        UNION ALL
        SELECT c.run, c.rank, o.other, c.part, w.ts, w.end_ts
        FROM _chief AS c
        JOIN _pairs AS o ON o.run = c.run AND o.rank = c.rank
        JOIN _windows AS w ON w.run = o.run AND w.rank = o.other
    ),
    _ops AS MATERIALIZED (
        SELECT
            c.run, c.late_rank, c.rank, g.name, g.ts, g.dur, 3 * (g.ts - c.ts) // (c.end_ts - c.ts) AS third,
            (g.grid_x, g.grid_y, g.grid_z, g.block_x, g.block_y, g.block_z)::VARCHAR AS geometry,
            o.name AS op_name
        FROM _compared AS c
        JOIN gpu_ops AS g ON g.run = c.run AND g.rank = c.rank AND g.ts >= c.ts AND g.ts < c.end_ts
        LEFT JOIN cpu_ops AS o ON o.run = g.run AND o.rank = g.rank AND o.event_id = g.op_id
        WHERE NOT g.is_suspect AND g.class = CASE c.part WHEN 'compute' THEN 'computation' WHEN 'memory' THEN 'memory' END
    ),
    _kernels AS MATERIALIZED (
        SELECT
            o.run, o.late_rank, o.name, o.geometry, max(o.op_name) AS op_name,
            count_if(o.rank = o.late_rank) AS own_n,
            count_if(o.rank <> o.late_rank) / any_value(c.other_count) AS usual_n,
            sum(CASE WHEN o.rank = o.late_rank THEN o.dur ELSE 0 END)::BIGINT AS own_ns,
            sum(CASE WHEN o.rank <> o.late_rank THEN o.dur ELSE 0 END)::BIGINT / any_value(c.other_count) AS usual_ns
        FROM _ops AS o
        JOIN _chief AS c ON c.run = o.run AND c.rank = o.late_rank
        GROUP BY o.run, o.late_rank, o.name, o.geometry
    ),
    _split AS MATERIALIZED (
        SELECT
            k.*,
            round(k.own_ns - k.usual_ns)::BIGINT AS more_ns,
            CASE WHEN k.own_n > 0 AND k.usual_n > 0 THEN round(k.own_ns - k.own_n * k.usual_ns / k.usual_n)::BIGINT ELSE 0 END AS longer_ns,
            CASE WHEN k.own_n > 0 AND k.usual_ns > 0 THEN round(k.own_n * k.usual_ns / k.usual_n)::BIGINT END AS expected_ns
        FROM _kernels AS k
    ),
    _by_length AS (
        SELECT
            s.run, s.late_rank, sum(s.more_ns)::BIGINT AS more_ns, sum(s.longer_ns)::BIGINT AS longer_ns,
            sum(s.own_ns) FILTER (s.expected_ns > 0) / nullif(sum(s.expected_ns), 0) AS slowdown
        FROM _split AS s
        GROUP BY s.run, s.late_rank
    ),
    _uniform AS (
        SELECT
            s.run, s.late_rank,
            sum(CASE WHEN s.own_ns / s.expected_ns - 1 >= (b.slowdown - 1) / 2 THEN s.expected_ns ELSE 0 END) / sum(s.expected_ns) AS share
        FROM _split AS s
        JOIN _by_length AS b ON b.run = s.run AND b.late_rank = s.late_rank
        WHERE s.expected_ns > 0
        GROUP BY s.run, s.late_rank
    ),
    _thirds AS (
        SELECT
            o.run, o.late_rank,
            sum(o.dur) FILTER (o.third = 0) / nullif(sum(round(s.usual_ns / s.usual_n)::BIGINT) FILTER (o.third = 0), 0) AS first_third,
            sum(o.dur) FILTER (o.third = 2) / nullif(sum(round(s.usual_ns / s.usual_n)::BIGINT) FILTER (o.third = 2), 0) AS last_third
        FROM _ops AS o
        JOIN _split AS s ON s.run = o.run AND s.late_rank = o.late_rank AND s.name = o.name AND s.geometry = o.geometry
        WHERE o.rank = o.late_rank AND s.expected_ns > 0
        GROUP BY o.run, o.late_rank
    ),
    -- What differs most: by longer calls where those are more, else by all of it.
    _subjects AS (
        SELECT
            s.run, s.late_rank, coalesce(s.op_name, s.name) AS subject, arg_max(s.name, (s.more_ns, s.name)) AS kernel,
            sum(CASE WHEN 2 * b.longer_ns >= b.more_ns THEN s.longer_ns ELSE s.more_ns END)::BIGINT AS ns
        FROM _split AS s
        JOIN _by_length AS b ON b.run = s.run AND b.late_rank = s.late_rank
        GROUP BY s.run, s.late_rank, coalesce(s.op_name, s.name)
    ),
    _device AS (
        SELECT s.run, s.late_rank, arg_max(s.subject, (s.ns, s.subject)) AS subject, arg_max(s.kernel, (s.ns, s.subject)) AS kernel, max(s.ns) AS ns
        FROM _subjects AS s
        GROUP BY s.run, s.late_rank
    ),
    _events AS (
        SELECT c.run, c.rank, c.event_id, c.parent_id, c.name, c.ts, c.dur, false AS is_annotation FROM cpu_ops AS c
        UNION ALL
        SELECT a.run, a.rank, a.event_id, a.parent_id, a.name, a.ts, a.dur, true FROM annotations AS a WHERE NOT a.on_gpu
        UNION ALL
        SELECT r.run, r.rank, r.event_id, r.parent_id, r.name, r.ts, r.dur, false FROM runtime_calls AS r
        UNION ALL
        SELECT p.run, p.rank, p.event_id, p.parent_id, p.name, p.ts, p.dur, false FROM python_calls AS p
    ),
    _host AS MATERIALIZED (
        SELECT c.run, c.late_rank, c.rank, e.event_id, e.parent_id, e.name, e.dur, e.is_annotation
        FROM _compared AS c
        JOIN _events AS e ON e.run = c.run AND e.rank = c.rank AND e.ts >= c.ts AND e.ts < c.end_ts
        WHERE c.part = 'idle'
    ),
    _inner AS (
        SELECT h.run, h.late_rank, h.rank, h.parent_id, sum(h.dur) AS ns
        FROM _host AS h
        WHERE h.parent_id IS NOT NULL
        GROUP BY h.run, h.late_rank, h.rank, h.parent_id
    ),
    _titles AS (
        SELECT n.name, regexp_replace(n.name, '#\d+', '#') AS title, regexp_matches(n.name, 'data_?(loader|pipe|load)|## ?data', 'i') AS is_loading
        FROM (SELECT DISTINCT h.name FROM _host AS h) AS n
    ),
    _own AS (
        SELECT
            h.run, h.late_rank, t.title, h.rank = h.late_rank AS is_late,
            sum(greatest(0, h.dur - coalesce(i.ns, 0)))::BIGINT AS own_ns,
            sum(CASE WHEN h.is_annotation AND t.is_loading THEN h.dur ELSE 0 END)::BIGINT AS loading_ns
        FROM _host AS h
        JOIN _titles AS t ON t.name = h.name
        LEFT JOIN _inner AS i ON i.run = h.run AND i.late_rank = h.late_rank AND i.rank = h.rank AND i.parent_id = h.event_id
        GROUP BY h.run, h.late_rank, t.title, h.rank = h.late_rank
    ),
    _titled AS (
        SELECT
            o.run, o.late_rank, o.title,
            round(sum(CASE WHEN o.is_late THEN o.own_ns ELSE -o.own_ns / c.other_count END))::BIGINT AS own_ns,
            round(sum(CASE WHEN o.is_late THEN o.loading_ns ELSE -o.loading_ns / c.other_count END))::BIGINT AS loading_ns
        FROM _own AS o
        JOIN _chief AS c ON c.run = o.run AND c.rank = o.late_rank
        GROUP BY o.run, o.late_rank, o.title
    ),
    _hosted AS (
        SELECT
            t.run, t.late_rank, arg_max(t.title, (t.own_ns, t.title)) AS title, max(t.own_ns) AS ns,
            arg_max(t.title, (t.loading_ns, t.title)) AS loading, max(t.loading_ns) AS loading_ns
        FROM _titled AS t
        GROUP BY t.run, t.late_rank
    )
SELECT
    c.run,
    c.rank,
    CASE
        WHEN c.part = 'compute' AND 2 * b.longer_ns < b.more_ns THEN 'more compute'
        WHEN c.part = 'compute' AND t.last_third - t.first_third >= 0.05 AND t.last_third - 1 >= 2 * (t.first_third - 1) THEN 'throttling'
        WHEN c.part = 'compute' THEN 'slower compute'
        WHEN c.part = 'memory' THEN 'copies'
        WHEN 2 * h.loading_ns >= c.idle_ns THEN 'data loading'
        WHEN c.part = 'idle' THEN 'host-bound'
    END AS cause,
    CASE c.part WHEN 'compute' THEN c.compute_ns WHEN 'memory' THEN c.memory_ns WHEN 'idle' THEN c.idle_ns END AS cause_ns,
    CASE WHEN c.part <> 'idle' THEN d.subject WHEN 2 * h.loading_ns >= c.idle_ns THEN h.loading ELSE h.title END AS subject,
    CASE WHEN c.part <> 'idle' THEN d.ns WHEN 2 * h.loading_ns >= c.idle_ns THEN h.loading_ns ELSE h.ns END AS subject_ns,
    CASE WHEN c.part = 'compute' THEN d.kernel END AS kernel,
    CASE WHEN c.part = 'compute' THEN b.slowdown END AS slowdown,
    t.first_third,
    t.last_third,
    u.share AS uniform_share,
    c.step_ns AS window_ns,
    c.cost_ns
FROM _chief AS c
LEFT JOIN _by_length AS b ON b.run = c.run AND b.late_rank = c.rank
LEFT JOIN _uniform AS u ON u.run = c.run AND u.late_rank = c.rank
LEFT JOIN _thirds AS t ON t.run = c.run AND t.late_rank = c.rank
LEFT JOIN _device AS d ON d.run = c.run AND d.late_rank = c.rank
LEFT JOIN _hosted AS h ON h.run = c.run AND h.late_rank = c.rank
