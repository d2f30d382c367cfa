-- Cause of each late rank's lateness: the kind of work on which the rank spends more time than its peers in the
-- compared blocks.
--
-- A block has the same duration on every rank, so a late rank that waits less computes, copies or idles more. Each
-- late rank is compared with at most eight peers, preferably ranks that are not late. A rank that is late only in
-- some steps is compared only in these steps. Additional computation is split exactly into longer calls (of kernels
-- with the same name, grid and block) and more work (more calls or different grids). Additional idle time is
-- attributed to the host activity during this time: to data loading or checkpoint saving if it explains half of the
-- idle time, otherwise to the name with the largest increase in self time. Calls that wait for the device do not
-- count as host work. A cause that explains less than half of the lateness is unknown.
CREATE OR REPLACE MACRO lib.lateness_causes(
    -- Name of a relation with the columns of lib.rank_blocks.
    blocks,
    -- Name of a relation with the columns of lib.late_ranks.
    judged_ranks
) AS TABLE
-- Columns:
--   run            VARCHAR      Run name.
--   rank           INTEGER      Rank that is late, suspected or late in some steps.
--   cause          VARCHAR      slower compute, throttling, more compute, host-bound, data loading, checkpoint, copies or unknown.
--   cause_share    DOUBLE [1]   Share of the rank's lateness that the cause explains.
--   cause_ns       BIGINT [ns]  Additional time of the rank due to the cause.
--   subject        VARCHAR      Operator, kernel or annotation that differs most.
--   subject_ns     BIGINT [ns]  Additional time of the subject.
--   kernel         VARCHAR      Kernel that differs most, if the device computes longer.
--   slowdown       DOUBLE [1]   Duration of the rank's kernels divided by the duration of the same calls on the peers.
--   first_third    DOUBLE [1]   slowdown in the first third of the compared time.
--   last_third     DOUBLE [1]   slowdown in the last third of the compared time.
--   uniform_share  DOUBLE [1]   Share of the rank's computation in kernels that slow down at least half as much as the rank.
--   window_ns      BIGINT [ns]  Length of the blocks that were compared.
WITH
    _late AS MATERIALIZED (
        SELECT j.run, j.rank, j.stage, CASE WHEN j.verdict = 'intermittent' THEN j.late_blocks END AS blocks
        FROM query_table(judged_ranks) AS j
        WHERE j.verdict IN ('straggler', 'suspected', 'intermittent')
    ),
    -- Prefer peers that are not stragglers and deviate least from the median.
    _pairs AS MATERIALIZED (
        SELECT l.run, l.rank, j.rank AS other
        FROM _late AS l
        JOIN query_table(judged_ranks) AS j ON j.run = l.run AND j.stage IS NOT DISTINCT FROM l.stage AND j.rank <> l.rank
        WHERE j.peer_count > 0
        QUALIFY row_number() OVER (PARTITION BY l.run, l.rank ORDER BY j.verdict = 'straggler', abs(j.late_ns), j.rank) <= lib.judging().cause_peers
    ),
    _blocks AS MATERIALIZED (
        SELECT
            b.*,
            -- Thirds consist of whole blocks, in which all ranks do the same work.
            CASE WHEN n.block_count >= 3 THEN 3 * (dense_rank() OVER (PARTITION BY b.run ORDER BY b.block) - 1) // n.block_count END AS third
        FROM (SELECT DISTINCT l.run FROM _late AS l) AS r
        JOIN query_table(blocks) AS b ON b.run = r.run
        JOIN (SELECT k.run, count(DISTINCT k.block) AS block_count FROM query_table(blocks) AS k GROUP BY k.run) AS n ON n.run = b.run
    ),
    -- Each late rank and the peers that it is compared with.
    _members AS MATERIALIZED (
        SELECT l.run, l.rank AS late_rank, l.rank, l.blocks FROM _late AS l
        UNION ALL
        SELECT p.run, p.rank, p.other, l.blocks FROM _pairs AS p JOIN _late AS l ON l.run = p.run AND l.rank = p.rank
    ),
    _windows AS MATERIALIZED (
        SELECT
            m.run, m.late_rank, m.rank, b.span, min(b.ts) AS ts, max(b.ts + b.block_ns) AS end_ts, sum(b.block_ns)::BIGINT AS window_ns,
            sum(b.compute_ns)::BIGINT AS compute_ns, sum(b.memory_ns)::BIGINT AS memory_ns, sum(b.idle_ns)::BIGINT AS idle_ns,
            CASE WHEN any_value(m.blocks) IS NULL THEN min(b.third) END AS first_third, min(b.ts) FILTER (b.third = 1) AS second_ts, min(b.ts) FILTER (b.third = 2) AS third_ts
        FROM _members AS m
        JOIN _blocks AS b ON b.run = m.run AND b.item_id = m.rank AND (m.blocks IS NULL OR list_contains(m.blocks, b.block))
        -- Consecutive blocks form one window; individually selected blocks are separate windows.
        GROUP BY m.run, m.late_rank, m.rank, b.span, CASE WHEN m.blocks IS NOT NULL THEN b.block END
    ),
    _sums AS MATERIALIZED (
        SELECT
            w.run, w.late_rank, w.rank, sum(w.window_ns)::BIGINT AS window_ns, sum(w.compute_ns)::BIGINT AS compute_ns,
            sum(w.memory_ns)::BIGINT AS memory_ns, sum(w.idle_ns)::BIGINT AS idle_ns
        FROM _windows AS w
        GROUP BY w.run, w.late_rank, w.rank
    ),
    _usual AS (
        SELECT
            s.run, s.late_rank, count(*) AS other_count, median(s.compute_ns) AS compute_ns, median(s.memory_ns) AS memory_ns, median(s.idle_ns) AS idle_ns
        FROM _sums AS s
        WHERE s.rank <> s.late_rank
        GROUP BY s.run, s.late_rank
    ),
    _chief AS MATERIALIZED (
        SELECT
            s.run, s.rank, s.window_ns, u.other_count, s.compute_ns + s.memory_ns = 0 AS on_host,
            round(s.compute_ns - u.compute_ns)::BIGINT AS compute_ns,
            round(s.memory_ns - u.memory_ns)::BIGINT AS memory_ns,
            round(s.idle_ns - u.idle_ns)::BIGINT AS idle_ns,
            round(s.compute_ns + s.memory_ns + s.idle_ns - u.compute_ns - u.memory_ns - u.idle_ns)::BIGINT AS own_ns,
            CASE
                WHEN greatest(s.compute_ns - u.compute_ns, s.memory_ns - u.memory_ns, s.idle_ns - u.idle_ns) <= 0 THEN NULL
                WHEN s.compute_ns - u.compute_ns >= greatest(s.memory_ns - u.memory_ns, s.idle_ns - u.idle_ns) THEN 'compute'
                WHEN s.idle_ns - u.idle_ns >= s.memory_ns - u.memory_ns THEN 'idle'
                ELSE 'memory'
            END AS part
        FROM _sums AS s
        JOIN _usual AS u ON u.run = s.run AND u.late_rank = s.rank
        WHERE s.rank = s.late_rank
    ),
    _compared AS MATERIALIZED (
        SELECT w.run, w.late_rank, w.rank, c.part, w.ts, w.end_ts, w.first_third, w.second_ts, w.third_ts
        FROM _windows AS w
        JOIN _chief AS c ON c.run = w.run AND c.rank = w.late_rank
    ),
    _ops AS MATERIALIZED (
        SELECT
            c.run, c.late_rank, c.rank, g.name, g.ts, g.dur, CASE WHEN g.ts >= c.third_ts THEN 2 WHEN g.ts >= c.second_ts THEN 1 ELSE c.first_third END AS third,
            (g.grid_x, g.grid_y, g.grid_z, g.block_x, g.block_y, g.block_z)::VARCHAR AS geometry,
            o.name AS op_name
        FROM _compared AS c
        JOIN gpu_ops AS g ON g.run = c.run AND g.rank = c.rank AND g.ts >= c.ts AND g.ts < c.end_ts
        LEFT JOIN cpu_ops AS o ON o.run = g.run AND o.rank = g.rank AND o.event_id = g.op_id
        WHERE NOT g.is_suspect AND g.class = CASE c.part WHEN 'compute' THEN 'computation' WHEN 'memory' THEN 'memory' END
    ),
    _kernel_thirds AS MATERIALIZED (
        SELECT
            o.run, o.late_rank, o.name, o.geometry, o.third, any_value(c.other_count) AS other_count, max(o.op_name) AS op_name,
            count_if(o.rank = o.late_rank) AS own_n, count_if(o.rank <> o.late_rank) AS other_n,
            sum(CASE WHEN o.rank = o.late_rank THEN o.dur ELSE 0 END)::BIGINT AS own_ns,
            sum(CASE WHEN o.rank <> o.late_rank THEN o.dur ELSE 0 END)::BIGINT AS other_ns
        FROM _ops AS o
        JOIN _chief AS c ON c.run = o.run AND c.rank = o.late_rank
        GROUP BY o.run, o.late_rank, o.name, o.geometry, o.third
    ),
    _kernels AS MATERIALIZED (
        SELECT
            t.run, t.late_rank, t.name, t.geometry, max(t.op_name) AS op_name,
            sum(t.own_n)::BIGINT AS own_n, sum(t.other_n)::BIGINT / any_value(t.other_count) AS usual_n,
            sum(t.own_ns)::BIGINT AS own_ns, sum(t.other_ns)::BIGINT / any_value(t.other_count) AS usual_ns
        FROM _kernel_thirds AS t
        GROUP BY t.run, t.late_rank, t.name, t.geometry
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
            sum(CASE WHEN s.own_ns / s.expected_ns - 1 >= lib.judging().uniform_slowdown * (b.slowdown - 1) THEN s.expected_ns ELSE 0 END) / sum(s.expected_ns) AS share
        FROM _split AS s
        JOIN _by_length AS b ON b.run = s.run AND b.late_rank = s.late_rank
        WHERE s.expected_ns > 0
        GROUP BY s.run, s.late_rank
    ),
    _thirds AS (
        SELECT
            e.run, e.late_rank,
            sum(e.own_ns) FILTER (e.third = 0) / nullif(sum(e.expected_ns) FILTER (e.third = 0), 0) AS first_third,
            sum(e.own_ns) FILTER (e.third = 2) / nullif(sum(e.expected_ns) FILTER (e.third = 2), 0) AS last_third
        FROM (
            SELECT t.run, t.late_rank, t.third, t.own_ns, round(t.own_n * t.other_ns / t.other_n)::BIGINT AS expected_ns
            FROM _kernel_thirds AS t
            WHERE t.own_n > 0 AND t.other_ns > 0
        ) AS e
        GROUP BY e.run, e.late_rank
    ),
    -- Subject with the largest difference: in longer calls if these account for at least half of it, otherwise in
    -- total time.
    _subjects AS (
        SELECT
            s.run, s.late_rank, coalesce(s.op_name, s.name) AS subject, arg_max(s.name, (s.more_ns, s.name)) AS kernel,
            sum(CASE WHEN b.longer_ns >= lib.judging().longer_share * b.more_ns THEN s.longer_ns ELSE s.more_ns END)::BIGINT AS ns
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
        SELECT
            c.run, c.late_rank, c.rank, e.event_id, e.parent_id, e.name, e.is_annotation,
            least(e.ts + e.dur, c.end_ts) - greatest(e.ts, c.ts) AS dur
        FROM _compared AS c
        JOIN _events AS e ON e.run = c.run AND e.rank = c.rank AND e.ts < c.end_ts AND e.ts + e.dur > c.ts
        WHERE c.part = 'idle'
    ),
    _inner AS (
        SELECT h.run, h.late_rank, h.rank, h.parent_id, sum(h.dur) AS ns
        FROM _host AS h
        WHERE h.parent_id IS NOT NULL
        GROUP BY h.run, h.late_rank, h.rank, h.parent_id
    ),
    _titles AS (
        SELECT
            n.name, regexp_replace(lib.frame_name(n.name), '#\d+', '#') AS title,
            lib.host_purpose(n.name) AS purpose
        FROM (SELECT DISTINCT h.name FROM _host AS h) AS n
        WHERE NOT regexp_matches(n.name, 'Synchronize|^(cuda|hip)Memcpy$|EventQuery|^ProfilerStep')
    ),
    _own AS (
        SELECT
            h.run, h.late_rank, t.title, h.rank = h.late_rank AS is_late,
            sum(greatest(0, h.dur - coalesce(i.ns, 0)))::BIGINT AS own_ns,
            sum(CASE WHEN t.purpose = 'data loading' AND h.is_annotation THEN h.dur ELSE 0 END)::BIGINT AS loading_ns,
            sum(CASE WHEN t.purpose = 'checkpoint' THEN h.dur ELSE 0 END)::BIGINT AS saving_ns
        FROM _host AS h
        JOIN _titles AS t ON t.name = h.name
        LEFT JOIN _inner AS i ON i.run = h.run AND i.late_rank = h.late_rank AND i.rank = h.rank AND i.parent_id = h.event_id
        GROUP BY h.run, h.late_rank, t.title, h.rank = h.late_rank
    ),
    _titled AS (
        SELECT
            o.run, o.late_rank, o.title,
            round(sum(CASE WHEN o.is_late THEN o.own_ns ELSE -o.own_ns / c.other_count END))::BIGINT AS own_ns,
            round(sum(CASE WHEN o.is_late THEN o.loading_ns ELSE -o.loading_ns / c.other_count END))::BIGINT AS loading_ns,
            round(sum(CASE WHEN o.is_late THEN o.saving_ns ELSE -o.saving_ns / c.other_count END))::BIGINT AS saving_ns
        FROM _own AS o
        JOIN _chief AS c ON c.run = o.run AND c.rank = o.late_rank
        GROUP BY o.run, o.late_rank, o.title
    ),
    _hosted AS (
        SELECT
            t.run, t.late_rank, arg_max(t.title, (t.own_ns, t.title)) AS title, max(t.own_ns) AS ns,
            arg_max(t.title, (t.loading_ns, t.title)) AS loading, max(t.loading_ns) AS loading_ns,
            arg_max(t.title, (t.saving_ns, t.title)) AS saving, max(t.saving_ns) AS saving_ns
        FROM _titled AS t
        GROUP BY t.run, t.late_rank
    ),
    _explained AS (
        SELECT
            c.run, c.rank, c.window_ns, c.own_ns, b.slowdown, t.first_third, t.last_third, u.share AS uniform_share, d.kernel,
            CASE
                WHEN c.part = 'compute' AND b.longer_ns < lib.judging().longer_share * b.more_ns THEN {'cause': 'more compute', 'ns': c.compute_ns, 'subject': d.subject, 'subject_ns': d.ns}
                WHEN c.part = 'compute' AND t.last_third - t.first_third >= lib.judging().throttled_slowdown AND t.last_third - 1 >= lib.judging().throttled_ratio * (t.first_third - 1)
                    THEN {'cause': 'throttling', 'ns': c.compute_ns, 'subject': d.subject, 'subject_ns': d.ns}
                WHEN c.part = 'compute' THEN {'cause': 'slower compute', 'ns': c.compute_ns, 'subject': d.subject, 'subject_ns': d.ns}
                WHEN c.part = 'memory' THEN {'cause': 'copies', 'ns': c.memory_ns, 'subject': d.subject, 'subject_ns': d.ns}
                WHEN h.loading_ns >= lib.judging().purpose_cause_share * c.idle_ns THEN {'cause': 'data loading', 'ns': c.idle_ns, 'subject': h.loading, 'subject_ns': h.loading_ns}
                WHEN h.saving_ns >= lib.judging().purpose_cause_share * c.idle_ns THEN {'cause': 'checkpoint', 'ns': c.idle_ns, 'subject': h.saving, 'subject_ns': h.saving_ns}
                -- Without a device, time outside recorded events is as likely a cause as any of the events.
                WHEN c.part = 'idle' AND c.on_host AND h.ns < lib.judging().subject_share * c.idle_ns THEN {'cause': 'host-bound', 'ns': c.idle_ns, 'subject': NULL, 'subject_ns': NULL}
                WHEN c.part = 'idle' THEN {'cause': 'host-bound', 'ns': c.idle_ns, 'subject': h.title, 'subject_ns': h.ns}
            END AS found
        FROM _chief AS c
        LEFT JOIN _by_length AS b ON b.run = c.run AND b.late_rank = c.rank
        LEFT JOIN _uniform AS u ON u.run = c.run AND u.late_rank = c.rank
        LEFT JOIN _thirds AS t ON t.run = c.run AND t.late_rank = c.rank
        LEFT JOIN _device AS d ON d.run = c.run AND d.late_rank = c.rank
        LEFT JOIN _hosted AS h ON h.run = c.run AND h.late_rank = c.rank
    )
SELECT
    e.run,
    e.rank,
    CASE WHEN e.found.ns >= lib.judging().cause_share * e.own_ns THEN e.found.cause ELSE 'unknown' END AS cause,
    least(1, e.found.ns / nullif(greatest(e.own_ns, 0), 0)) AS cause_share,
    e.found.ns AS cause_ns,
    e.found.subject AS subject,
    e.found.subject_ns AS subject_ns,
    CASE WHEN e.found.cause IN ('slower compute', 'throttling', 'more compute') THEN e.kernel END AS kernel,
    CASE WHEN e.found.cause IN ('slower compute', 'throttling', 'more compute') THEN e.slowdown END AS slowdown,
    e.first_third,
    e.last_third,
    e.uniform_share,
    e.window_ns
FROM _explained AS e
