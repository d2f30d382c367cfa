-- Match communication kernels across the ranks of a run into collectives, estimate clock offsets, and compute waits.
--
-- Each stage is a macro of lib. In corrected time, a rank waits from its own start to the start of the last rank.
--
-- - collective_calls: identify the collective that each kernel runs.
-- - collective_channels: assign each kernel to a channel, whose operations have the same order on all ranks.
-- - sequence_shifts: find by how much each rank's sequence in a channel is shifted.
-- - repaired_positions: repair positions if events are missing in the middle of a sequence.
-- - matched_items: match kernels into collectives.
-- - clock_estimates: estimate the offset and drift of each rank's clock.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO derived.matched_collectives_v1(
    runs
) AS TABLE
-- Columns: those of matched_collectives.
WITH
    -- Read for labels, for numbers, and at the end. Computing them three times would take a third of the query's time.
    labeled_calls AS MATERIALIZED (
        SELECT c.*
        FROM lib._collective_calls(runs) AS c
    ),
    labels AS MATERIALIZED (
        SELECT l.*, dense_rank() OVER (ORDER BY l.run, l.span, l.channel_id) AS lane_id
        FROM lib._collective_channels('labeled_calls') AS l
    ),
    labeled AS MATERIALIZED (
        SELECT
            c.run, c.rank, c.span, c.event_id, c.ts, c.ts + c.dur AS end_ts, c.on_host, c.seq, c.shape_id, l.lane_id,
            -- All ranks launch the collectives of a group in the same order, which equals the order of starts only
            -- within one stream.
            coalesce(last_value(c.launch_ts IGNORE NULLS) OVER (
                PARTITION BY c.run, c.rank, c.span, c.device, c.stream ORDER BY c.ts, c.event_id
            ), -1) AS issued_ts
        FROM labeled_calls AS c
        JOIN labels AS l ON l.label_id = c.label_id
    ),
    items AS MATERIALIZED (
        SELECT
            l.lane_id, l.rank, l.event_id, l.ts, l.end_ts, l.on_host, l.seq, l.shape_id,
            row_number() OVER in_order - 1 AS position,
            -- On the host, end times depend on scheduling, so they reveal neither alignment nor clock offsets.
            CASE WHEN NOT l.on_host THEN lead(l.end_ts) OVER in_order - l.end_ts END AS gap,
            count(*) OVER (PARTITION BY l.lane_id, l.rank) AS n
        FROM labeled AS l
        WINDOW in_order AS (PARTITION BY l.lane_id, l.rank ORDER BY l.issued_ts, l.ts, l.event_id)
    ),
    shifts AS MATERIALIZED (
        SELECT s.*
        FROM lib._sequence_shifts('items') AS s
    ),
    shifted AS MATERIALIZED (
        SELECT i.lane_id, i.rank, s.ref_rank, i.position, i.position + s.shift AS ordinal, i.end_ts, i.gap, i.seq, i.shape_id
        FROM items AS i
        JOIN shifts AS s ON s.lane_id = i.lane_id AND s.rank = i.rank
    ),
    repaired AS MATERIALIZED (
        SELECT r.*
        FROM lib._repaired_positions('shifted') AS r
    ),
    channels AS MATERIALIZED (
        SELECT
            l.lane_id, l.run, any_value(l.span) AS span, any_value(l.channel_id) AS channel_id, any_value(l.channel) AS channel_text,
            max(l.member_ranks) AS member_ranks, max(l.full_pg_name) AS full_pg_name,
            bool_or(l.is_p2p) AS is_p2p, bool_or(l.is_known) AS is_known, count(DISTINCT l.rank) AS rank_count
        FROM labels AS l
        GROUP BY l.lane_id, l.run
    ),
    starts AS (
        SELECT l.run, l.rank, l.span, min(l.ts) AS first_ts FROM labeled AS l GROUP BY l.run, l.rank, l.span
    ),
    keyed AS (
        SELECT
            c.run, c.span, i.lane_id, i.rank, i.event_id, i.ts, i.end_ts, m.number, m.nth, m.method, c.rank_count,
            -- For the rank's first collective in the capture, the cause of its start time is not recorded.
            i.ts = s.first_ts AS is_first
        FROM items AS i
        JOIN lib._matched_items('shifted', 'repaired') AS m ON m.lane_id = i.lane_id AND m.rank = i.rank AND m.position = i.position
        JOIN channels AS c ON c.lane_id = i.lane_id
        JOIN starts AS s ON s.run = c.run AND s.rank = i.rank AND s.span = c.span
    ),
    instances AS (
        SELECT
            k.run, k.lane_id, k.number, k.nth, count(*) AS found_count, bool_or(k.is_first) AS is_startup,
            row_number() OVER (PARTITION BY k.run ORDER BY min(k.ts), k.lane_id, k.number, k.nth) AS collective_id
        FROM keyed AS k
        GROUP BY k.run, k.lane_id, k.number, k.nth
    ),
    matched AS MATERIALIZED (
        SELECT
            k.run, k.span, k.lane_id, k.rank, k.event_id, k.ts, k.end_ts, k.number, k.nth, k.method, k.rank_count,
            i.collective_id, i.found_count, i.is_startup,
            i.found_count = k.rank_count AND k.rank_count > 1 AND NOT i.is_startup AS is_usable
        FROM keyed AS k
        JOIN instances AS i ON i.lane_id = k.lane_id AND i.number = k.number AND i.nth = k.nth
    ),
    clocks AS MATERIALIZED (
        SELECT c.*
        FROM lib._clock_estimates(runs, 'matched', 'shifts') AS c
    ),
    corrected AS MATERIALIZED (
        SELECT
            m.*,
            c.domain AS clock_domain,
            CASE WHEN c.is_applied THEN c.clock_offset_ns + round(c.drift * (m.ts - c.mid_ts))::BIGINT ELSE 0 END AS clock_correction_ns
        FROM matched AS m
        JOIN clocks AS c ON c.run = m.run AND c.rank = m.rank AND c.span = m.span
    ),
    gathered AS MATERIALIZED (
        SELECT
            c.run, c.collective_id, any_value(c.lane_id) AS lane_id,
            max(c.ts - c.clock_correction_ns) AS last_start,
            min(c.end_ts - c.clock_correction_ns) AS first_end,
            max(c.end_ts - c.clock_correction_ns) - min(c.end_ts - c.clock_correction_ns) AS end_spread,
            count(DISTINCT c.clock_domain) AS domain_count,
            arg_max(c.rank, (c.ts - c.clock_correction_ns, -c.rank)) AS last_rank
        FROM corrected AS c
        GROUP BY c.run, c.collective_id
    ),
    gaps AS (
        SELECT i.lane_id, median(i.gap) AS gap
        FROM items AS i
        GROUP BY i.lane_id
    ),
    -- A wait is reliable only if end times agree within 5 % of the channel's median gap plus the smaller of ten times
    -- its median spread and a quarter of its median gap. Between hosts that run collectives on the CPU, the limit is
    -- 50 us, because such collectives reveal nothing about the clocks.
    tolerances AS (
        SELECT
            g.lane_id,
            CASE
                WHEN any_value(p.gap) IS NULL THEN 50000
                ELSE 0.05 * any_value(p.gap) + least(10 * median(g.end_spread), 0.25 * any_value(p.gap))
            END AS tolerance
        FROM gathered AS g
        JOIN gaps AS p ON p.lane_id = g.lane_id
        GROUP BY g.lane_id
    )
SELECT
    c.run, c.rank, c.span, c.event_id, c.collective_id,
    a.collective, a.detected_by, a.pg_name, a.pg_desc, a.pg_ranks, a.group_size, a.elem_type, a.in_elems, a.out_elems,
    a.in_split_sizes, a.out_split_sizes, a.seq, a.src_rank, a.dst_rank,
    a.on_host, a.device, a.stream, a.step, a.in_last_step, a.op_id, a.module_id, a.ts, a.dur,
    n.channel_id, n.channel_text AS channel, to_json(n.member_ranks)::VARCHAR AS member_ranks, n.is_p2p,
    c.rank_count, c.found_count,
    CASE WHEN c.found_count < 2 THEN 'none' WHEN c.method = 'ordinal' AND NOT n.is_known THEN 'stream' ELSE c.method END AS match_method,
    (s.next_score - s.score) / 1000 AS match_margin,
    c.found_count = c.rank_count AND c.rank_count > 1 AS is_complete,
    c.is_startup,
    c.clock_correction_ns,
    c.ts - c.clock_correction_ns AS start_ns,
    c.end_ts - c.clock_correction_ns AS end_ns,
    -- A rank that ended before the last rank started did not wait for that rank.
    CASE WHEN c.found_count > 1 THEN least(g.last_start - (c.ts - c.clock_correction_ns), c.end_ts - c.ts) END AS wait_ns,
    CASE WHEN c.found_count > 1 THEN greatest(0, g.first_end - g.last_start) END AS transfer_ns,
    CASE WHEN c.found_count > 1 THEN g.end_spread END AS end_spread_ns,
    c.found_count > 1 AND c.rank = g.last_rank AS is_last,
    g.first_end < g.last_start AS ended_before_last_start,
    -- On one host, a rank that continues late waited for the scheduler of the operating system.
    CASE WHEN a.on_host AND g.domain_count = 1 THEN g.first_end >= g.last_start ELSE g.end_spread <= t.tolerance END AS end_times_match,
    k.domain AS clock_domain, k.reference_rank AS clock_reference_rank, k.clock_offset_ns AS clock_offset_ns, k.spread_ns AS clock_spread_ns,
    k.drift AS clock_drift, k.sample_count AS clock_sample_count, k.mid_ts AS clock_mid_ts, k.is_applied AS clock_is_applied
FROM corrected AS c
JOIN labeled_calls AS a ON a.run = c.run AND a.rank = c.rank AND a.event_id = c.event_id
JOIN channels AS n ON n.lane_id = c.lane_id
JOIN gathered AS g ON g.run = c.run AND g.collective_id = c.collective_id
JOIN tolerances AS t ON t.lane_id = c.lane_id
JOIN clocks AS k ON k.run = c.run AND k.rank = c.rank AND k.span = c.span
LEFT JOIN shifts AS s ON s.lane_id = c.lane_id AND s.rank = c.rank
