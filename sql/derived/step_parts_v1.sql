-- Breakdown of each host step, and of each block of the common window, by device activity; the parts sum to the step
-- or block.
--
-- The common window extends from the first to the last collective found on all ranks, on the shared clock. Its blocks
-- have the same length on all ranks and tile the window. Each step starts a new block, at the median of its start times
-- over the ranks; a step without a common collective is merged with the next step. If fewer than two steps start in the
-- window, its collectives are divided evenly into at most eight blocks, each with at least two collectives.
--
-- The breakdown is one sweep over kernels, copies and step bounds, with one counter per kind. Sums are computed
-- between consecutive bounds. A part is the difference of running sums at the bounds of a step. Steps may therefore
-- overlap, as they do if the profiler opens the next step before it closes the current one. A collective counts as
-- two pieces: waiting for the last rank, then the transfer. If the collective is unmatched, or its end times disagree
-- between ranks, it is one piece, and counts as unmatched. Concurrent activity counts once, as the first of computation,
-- transfer, unmatched communication, wait and copies. A computation kernel that waits for the same kernel on other ranks
-- (lib.waiting_kernels) counts as wait until the last of them starts. Time without recorded activity that is in `unrecorded_time` counts as unrecorded.
-- Without a device, operators hide the communication in the background as kernels do, and their time counts as idle,
-- because a device would be.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO derived.step_parts_v1(
    runs
) AS TABLE
-- Columns: those of step_parts.
WITH
    parts AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.span, m.collective_id, m.ts, m.ts + m.dur AS end_ts, m.end_ns, m.clock_is_applied, m.clock_offset_ns,
            m.clock_drift, m.clock_mid_ts,
            lib.waits_are_known(m.found_count, m.end_times_match, m.is_p2p, m.on_host) AS is_known,
            coalesce(m.wait_ns, 0) AS found_wait,
            m.is_complete AND NOT m.ended_before_last_start AS is_meeting,
            m.is_p2p, m.step
        FROM lib.swept_collectives(runs, NULL) AS m
    ),
    split AS MATERIALIZED (
        SELECT p.*, CASE WHEN p.is_known THEN p.found_wait ELSE 0 END AS waited FROM parts AS p
    ),
    known AS MATERIALIZED (
        SELECT
            k.run, k.rank, k.span, k.offset_ns AS ts, k.offset_ns + k.dur AS end_ts, d.run IS NOT NULL AS has_device,
            -- One number identifies run, rank and recording: sorting by one column takes half as long.
            row_number() OVER (ORDER BY k.run, k.rank, k.span) AS lane
        FROM rank_spans AS k
        LEFT JOIN lib.device_ranks(runs, NULL) AS d ON d.run = k.run AND d.rank = k.rank
        WHERE k.event_count > 0 AND lib.is_requested(runs, k.run)
    ),
    -- Without collectives, there is nothing that operators of the host could hide.
    host_only AS (
        SELECT DISTINCT p.run, p.rank
        FROM parts AS p
        ANTI JOIN lib.device_ranks(runs, NULL) AS d ON d.run = p.run AND d.rank = p.rank
    ),
    stepped AS MATERIALIZED (
        SELECT s.run, s.rank, s.span, s.step, s.ts, s.ts + s.dur AS end_ts, s.is_last
        FROM steps AS s
        WHERE lib.is_requested(runs, s.run)
    ),
    -- The end times of a send and its receive agree less closely than the end times of a collective.
    meeting_kinds AS (
        SELECT p.run, p.span, bool_and(p.is_p2p) AS is_p2p
        FROM parts AS p
        WHERE p.is_meeting
        GROUP BY p.run, p.span
    ),
    meetings AS (
        SELECT p.run, p.rank, p.span, min(p.end_ns) AS first_end, max(p.end_ns) AS last_end
        FROM parts AS p
        JOIN meeting_kinds AS k ON k.run = p.run AND k.span = p.span AND k.is_p2p = p.is_p2p
        WHERE p.is_meeting
        GROUP BY p.run, p.rank, p.span
    ),
    -- Within the window, a rank that waits less than the others computes, copies or idles more.
    common AS (
        SELECT m.run, m.span, max(m.first_end) AS from_ns, min(m.last_end) AS to_ns, count(*) AS rank_count
        FROM meetings AS m
        GROUP BY m.run, m.span
        HAVING max(m.first_end) < min(m.last_end)
    ),
    clocks AS MATERIALIZED (
        SELECT DISTINCT
            p.run, p.rank, p.span, p.clock_mid_ts AS mid_ts,
            CASE WHEN p.clock_is_applied THEN p.clock_offset_ns ELSE 0 END AS ahead_ns,
            CASE WHEN p.clock_is_applied THEN p.clock_drift ELSE 0 END AS drift
        FROM parts AS p
    ),
    waiting AS MATERIALIZED (
        SELECT w.* FROM lib.waiting_kernels(runs, 'clocks') AS w
    ),
    shared_steps AS (
        SELECT
            s.run, s.span, s.step,
            -- The median as an integer: floating-point numbers lose 256 ns of times since 1970.
            quantile_disc(s.start_ns, 0.5) + (-quantile_disc(-s.start_ns, 0.5) - quantile_disc(s.start_ns, 0.5)) // 2 AS at_ns,
            count(*) AS rank_count
        FROM (
            SELECT t.run, t.span, t.step, t.ts - k.ahead_ns - round(k.drift * (t.ts - k.mid_ts))::BIGINT AS start_ns
            FROM stepped AS t
            JOIN clocks AS k ON k.run = t.run AND k.rank = t.rank AND k.span = t.span
        ) AS s
        GROUP BY s.run, s.span, s.step
    ),
    cuts AS MATERIALIZED (
        SELECT s.run, s.span, s.at_ns
        FROM shared_steps AS s
        JOIN common AS c ON c.run = s.run AND c.span = s.span
        WHERE s.at_ns > c.from_ns AND s.at_ns < c.to_ns AND 2 * s.rank_count > c.rank_count
        QUALIFY count(*) OVER (PARTITION BY s.run, s.span) >= 2
    ),
    met AS MATERIALIZED (
        SELECT p.run, p.span, p.collective_id, min(p.end_ns) AS at_ns, min(p.step) AS step
        FROM parts AS p
        JOIN meeting_kinds AS k ON k.run = p.run AND k.span = p.span AND k.is_p2p = p.is_p2p
        JOIN common AS c ON c.run = p.run AND c.span = p.span
        WHERE p.is_meeting AND p.end_ns > c.from_ns AND p.end_ns <= c.to_ns
        GROUP BY p.run, p.span, p.collective_id
    ),
    launched AS MATERIALIZED (
        SELECT m.run, m.span, m.step, max(m.at_ns) AS at_ns
        FROM met AS m
        WHERE m.step IS NOT NULL
        GROUP BY m.run, m.span, m.step
        QUALIFY count(*) OVER (PARTITION BY m.run, m.span) >= 2
    ),
    -- Runs in which over a quarter of the steps start on the host before the previous step's collectives have ended.
    ahead AS MATERIALIZED (
        SELECT l.run, l.span
        FROM launched AS l
        JOIN shared_steps AS s ON s.run = l.run AND s.span = l.span AND s.step = l.step + 1
        GROUP BY l.run, l.span
        HAVING 4 * count_if(s.at_ns < l.at_ns) > count(*)
    ),
    launched_bounds AS (
        SELECT l.run, l.span, l.at_ns
        FROM launched AS l
        JOIN ahead AS a ON a.run = l.run AND a.span = l.span
        QUALIFY l.at_ns > coalesce(max(l.at_ns) OVER (PARTITION BY l.run, l.span ORDER BY l.step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)
    ),
    -- Keep a cut only if a collective has ended since the previous cut.
    ordered_cuts AS (
        SELECT o.run, o.span, o.at_ns, o.is_cut, count_if(NOT o.is_cut) OVER (PARTITION BY o.run, o.span ORDER BY o.at_ns, o.is_cut ROWS UNBOUNDED PRECEDING) AS met_count
        FROM (
            SELECT c.run, c.span, c.at_ns, true AS is_cut FROM cuts AS c
            UNION ALL
            SELECT m.run, m.span, m.at_ns, false FROM met AS m
        ) AS o
    ),
    step_bounds AS (
        SELECT o.run, o.span, o.at_ns
        FROM ordered_cuts AS o
        WHERE o.is_cut AND NOT EXISTS (FROM ahead AS a WHERE a.run = o.run AND a.span = o.span)
        QUALIFY o.met_count > coalesce(lag(o.met_count) OVER (PARTITION BY o.run, o.span ORDER BY o.at_ns), 0)
    ),
    -- Blocks are bounded by ends of collectives, because all ranks have then done the same work.
    counted_meetings AS (
        SELECT
            m.run, m.span, m.at_ns,
            row_number() OVER (PARTITION BY m.run, m.span ORDER BY m.at_ns, m.collective_id) AS position,
            count(*) OVER (PARTITION BY m.run, m.span) AS n
        FROM met AS m
        WHERE
            NOT EXISTS (FROM cuts AS k WHERE k.run = m.run AND k.span = m.span)
            AND NOT EXISTS (FROM ahead AS a WHERE a.run = m.run AND a.span = m.span)
    ),
    equal_bounds AS (
        SELECT c.run, c.span, c.at_ns
        FROM counted_meetings AS c
        WHERE c.position < c.n AND c.position * least(8, c.n // 2) // c.n > (c.position - 1) * least(8, c.n // 2) // c.n
    ),
    block_bounds AS (
        SELECT c.run, c.span, c.from_ns AS at_ns FROM common AS c
        UNION ALL
        SELECT c.run, c.span, c.to_ns FROM common AS c
        UNION ALL
        SELECT b.run, b.span, b.at_ns FROM step_bounds AS b
        UNION ALL
        SELECT l.run, l.span, l.at_ns FROM launched_bounds AS l
        UNION ALL
        SELECT e.run, e.span, e.at_ns FROM equal_bounds AS e
    ),
    blocks AS (
        SELECT
            b.run, b.span, b.at_ns AS from_ns,
            lead(b.at_ns) OVER (PARTITION BY b.run, b.span ORDER BY b.at_ns) AS to_ns,
            row_number() OVER (PARTITION BY b.run ORDER BY b.span, b.at_ns) - 1 AS block
        FROM block_bounds AS b
        QUALIFY lead(b.at_ns) OVER (PARTITION BY b.run, b.span ORDER BY b.at_ns) > b.at_ns
    ),
    windows AS MATERIALIZED (
        SELECT s.run, s.rank, s.span, s.step, s.is_last, false AS is_common, NULL::BIGINT AS block, s.ts, s.end_ts FROM stepped AS s
        UNION ALL
        SELECT k.run, k.rank, k.span, NULL, false, false, NULL, k.ts, k.end_ts
        FROM known AS k
        WHERE NOT EXISTS (FROM stepped AS s WHERE s.run = k.run AND s.rank = k.rank AND s.span = k.span)
        UNION ALL
        -- Block bounds, converted to the rank's own clock.
        SELECT
            m.run, m.rank, m.span, NULL, false, true, b.block,
            b.from_ns + k.ahead_ns + round(k.drift * (b.from_ns + k.ahead_ns - k.mid_ts))::BIGINT,
            b.to_ns + k.ahead_ns + round(k.drift * (b.to_ns + k.ahead_ns - k.mid_ts))::BIGINT
        FROM meetings AS m
        JOIN blocks AS b ON b.run = m.run AND b.span = m.span
        JOIN clocks AS k ON k.run = m.run AND k.rank = m.rank AND k.span = m.span
    ),
    -- Layers in order of precedence; bounds have layer 0. Unrecorded intervals contain no recorded activity and do not overlap.
    pieces AS (
        SELECT
            g.run, g.rank, g.span, CASE g.class WHEN 'computation' THEN 1 ELSE 5 END AS layer, g.ts + coalesce(w.wait_ns, 0) AS ts,
            g.ts + g.dur AS end_ts
        FROM gpu_ops AS g
        LEFT JOIN waiting AS w ON w.run = g.run AND w.rank = g.rank AND w.event_id = g.event_id
        WHERE g.class IN ('computation', 'memory') AND NOT g.is_suspect AND g.dur > 0 AND lib.is_requested(runs, g.run)
        UNION ALL
        SELECT c.run, c.rank, c.span, 1, c.ts, c.ts + c.dur FROM lib._computing_operators(runs, 'host_only') AS c
        UNION ALL
        SELECT p.run, p.rank, p.span, 4, p.ts, p.ts + p.waited FROM split AS p WHERE p.waited > 0
        UNION ALL
        SELECT w.run, w.rank, w.span, 4, w.ts, w.ts + w.wait_ns FROM waiting AS w WHERE w.wait_ns > 0
        UNION ALL
        SELECT p.run, p.rank, p.span, CASE WHEN p.is_known THEN 2 ELSE 3 END, p.ts + p.waited, p.end_ts
        FROM split AS p
        WHERE p.end_ts > p.ts + p.waited
        UNION ALL
        SELECT u.run, u.rank, u.span, CASE u.kind WHEN 'before' THEN 6 WHEN 'after' THEN 7 ELSE 8 END, u.ts, u.ts + u.dur
        FROM unrecorded_time AS u
        WHERE u.kind <> 'undecided' AND lib.is_requested(runs, u.run)
        UNION ALL
        SELECT w.run, w.rank, w.span, 0, w.ts, w.end_ts FROM windows AS w
    ),
    lane_pieces AS MATERIALIZED (
        SELECT k.lane, p.ts, p.end_ts, p.layer, 0 AS count_1, 0 AS count_2
        FROM pieces AS p
        JOIN known AS k ON k.run = p.run AND k.rank = p.rank AND k.span = p.span
    ),
    told AS (
        SELECT s.lane, s.ts AS at_ts, s.ts + s.dur AS next_ts, s.position, s.dur AS ns, s.layer AS part, s.layers & 16 > 0 AS is_copying
        FROM lib.counted_segments('lane_pieces') AS s
    ),
    -- Sums for each interval between two bounds, of which there are few.
    places AS (
        SELECT
            t.lane, t.position, min(t.at_ts) AS from_ts,
            sum(CASE WHEN t.part = 1 THEN t.ns ELSE 0 END)::BIGINT AS compute_ns,
            sum(CASE WHEN t.part = 2 THEN t.ns ELSE 0 END)::BIGINT AS transfer_ns,
            sum(CASE WHEN t.part = 3 THEN t.ns ELSE 0 END)::BIGINT AS unmatched_ns,
            sum(CASE WHEN t.part IN (2, 3) AND t.is_copying THEN t.ns ELSE 0 END)::BIGINT AS copied_ns,
            sum(CASE WHEN t.part = 4 THEN t.ns ELSE 0 END)::BIGINT AS wait_ns,
            sum(CASE WHEN t.part = 5 THEN t.ns ELSE 0 END)::BIGINT AS memory_ns,
            sum(CASE WHEN t.part = 6 THEN t.ns ELSE 0 END)::BIGINT AS before_ns,
            sum(CASE WHEN t.part = 7 THEN t.ns ELSE 0 END)::BIGINT AS after_ns,
            sum(CASE WHEN t.part = 8 THEN t.ns ELSE 0 END)::BIGINT AS lost_ns,
            min(CASE WHEN t.part > 0 THEN t.at_ts END) AS busy_from,
            max(CASE WHEN t.part > 0 THEN t.next_ts END) AS busy_to
        FROM told AS t
        WHERE t.position > 0
        GROUP BY t.lane, t.position
    ),
    marks AS MATERIALIZED (
        SELECT
            p.lane, p.from_ts,
            coalesce(sum(p.compute_ns) OVER earlier, 0)::BIGINT AS compute_ns,
            coalesce(sum(p.transfer_ns) OVER earlier, 0)::BIGINT AS transfer_ns,
            coalesce(sum(p.unmatched_ns) OVER earlier, 0)::BIGINT AS unmatched_ns,
            coalesce(sum(p.copied_ns) OVER earlier, 0)::BIGINT AS copied_ns,
            coalesce(sum(p.wait_ns) OVER earlier, 0)::BIGINT AS wait_ns,
            coalesce(sum(p.memory_ns) OVER earlier, 0)::BIGINT AS memory_ns,
            coalesce(sum(p.before_ns) OVER earlier, 0)::BIGINT AS before_ns,
            coalesce(sum(p.after_ns) OVER earlier, 0)::BIGINT AS after_ns,
            coalesce(sum(p.lost_ns) OVER earlier, 0)::BIGINT AS lost_ns,
            max(p.busy_to) OVER earlier AS busy_to,
            min(p.busy_from) OVER later AS busy_from
        FROM places AS p
        WINDOW
            earlier AS (PARTITION BY p.lane ORDER BY p.position ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
            later AS (PARTITION BY p.lane ORDER BY p.position ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
    ),
    -- A recording has at most one undecided interval.
    undecided AS (
        SELECT u.run, u.rank, u.span, u.ts, u.ts + u.dur AS end_ts
        FROM unrecorded_time AS u
        WHERE u.kind = 'undecided' AND lib.is_requested(runs, u.run)
    ),
    measured AS (
        SELECT
            w.run, w.rank, w.span, w.step, w.is_last, w.is_common, w.block, w.ts, w.end_ts, w.end_ts - w.ts AS step_ns,
            CASE WHEN k.has_device THEN b.compute_ns - a.compute_ns ELSE 0 END AS compute_ns,
            b.transfer_ns - a.transfer_ns AS exposed_transfer_ns,
            b.unmatched_ns - a.unmatched_ns AS exposed_unmatched_ns,
            b.copied_ns - a.copied_ns AS copied_transfer_ns,
            b.wait_ns - a.wait_ns AS exposed_wait_ns,
            b.memory_ns - a.memory_ns AS exposed_memory_ns,
            b.before_ns - a.before_ns AS unrecorded_before_ns,
            b.after_ns - a.after_ns AS unrecorded_after_ns,
            b.lost_ns - a.lost_ns AS unrecorded_lost_ns,
            -- A step without activity counts entirely as idle before the first activity.
            least(coalesce(a.busy_from, w.end_ts), w.end_ts) - w.ts AS idle_before_ns,
            CASE WHEN a.busy_from < w.end_ts THEN w.end_ts - least(w.end_ts, b.busy_to) ELSE 0 END AS idle_after_ns
        FROM windows AS w
        JOIN known AS k ON k.run = w.run AND k.rank = w.rank AND k.span = w.span
        JOIN marks AS a ON a.lane = k.lane AND a.from_ts = w.ts
        JOIN marks AS b ON b.lane = k.lane AND b.from_ts = w.end_ts
    )
SELECT
    m.run, m.rank, m.span, m.step, m.is_last, m.is_common, m.block, m.ts, m.step_ns, m.compute_ns, m.exposed_transfer_ns, m.exposed_unmatched_ns,
    m.exposed_wait_ns, m.exposed_memory_ns, m.copied_transfer_ns, m.step_ns - m.unrecorded_before_ns - m.unrecorded_lost_ns - m.unrecorded_after_ns AS recorded_ns,
    m.unrecorded_before_ns, m.unrecorded_lost_ns, m.unrecorded_after_ns,
    CASE WHEN u.run IS NULL THEN 0 ELSE greatest(least(m.end_ts, u.end_ts) - greatest(m.ts, u.ts), 0) END AS undecided_ns,
    m.idle_before_ns,
    m.step_ns - m.compute_ns - m.exposed_transfer_ns - m.exposed_unmatched_ns - m.exposed_wait_ns - m.exposed_memory_ns
        - m.unrecorded_before_ns - m.unrecorded_lost_ns - m.unrecorded_after_ns - m.idle_before_ns - m.idle_after_ns
        AS idle_between_ns,
    m.idle_after_ns
FROM measured AS m
LEFT JOIN undecided AS u ON u.run = m.run AND u.rank = m.rank AND u.span = m.span
