-- Clock offset of each rank, relative to the lowest rank to which collectives connect it.
--
-- All ranks leave a collective together. The median difference of end times between a rank and the reference of its
-- channel is therefore the difference of their clocks. A drift between the first and last third of the shared time is
-- removed first, if it exceeds eight times its error, three times the scatter of the end times and their resolution,
-- and its rate is below 2e-4, because the quartz of a clock is better than that. Differences add up along the channels
-- and are pooled over the ranks of a host; if hosts are unknown, each rank has its own clock. So has a rank that
-- records other times than the ranks of its host, by more than its whole capture. Collectives that were not found on
-- all ranks, or whose gaps disagree, are not used. A second pass uses the median over all ranks of a collective that
-- have the same reference.
--
-- Clocks may be decades apart, so floating-point numbers hold only times within a capture, which are counted from the
-- middle of the capture of each rank.
CREATE OR REPLACE MACRO lib._clock_estimates(
    runs,
    -- Name of a relation with run, lane_id, rank, number, nth, end_ts, is_usable.
    matched_items,
    -- Name of a relation with the columns of lib._sequence_shifts.
    shift_items
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   span             INTEGER         Recording of the rank.
--   domain           VARCHAR         Clock domain: the host, or the rank if hosts are unknown.
--   reference_rank   INTEGER         Reference rank of the clock.
--   clock_offset_ns  BIGINT [ns]     How far the clock is ahead of the reference, at mid_ts.
--   spread_ns        DOUBLE [ns]     Median deviation of the samples from the estimate.
--   drift            DOUBLE [1]      Clock gain per unit of time.
--   mid_ts           BIGINT [ns]     Middle of the reference rank's capture, on this rank's clock.
--   sample_count     BIGINT [count]  Number of collective ends that the estimate uses.
--   is_applied       BOOLEAN         Whether the correction is applied, because it exceeds three times its spread or the clock drifts.
WITH RECURSIVE
    _mids AS MATERIALIZED (
        SELECT m.run, m.span, m.rank, min(m.end_ts) + (max(m.end_ts) - min(m.end_ts)) // 2 AS mid_ts, max(m.end_ts) - min(m.end_ts) AS length
        FROM query_table(matched_items) AS m
        GROUP BY m.run, m.span, m.rank
    ),
    _pairs AS MATERIALIZED (
        SELECT
            m.run, m.span, s.ref_rank, m.rank,
            b.end_ts - p.mid_ts AS at_ns,
            (m.end_ts - q.mid_ts) - (b.end_ts - p.mid_ts) AS difference,
            b.end_ts - min(b.end_ts) OVER pair AS since, max(b.end_ts) OVER pair - min(b.end_ts) OVER pair AS length,
            m.end_ts - min(m.end_ts) OVER pair AS own_since
        FROM query_table(matched_items) AS m
        JOIN query_table(shift_items) AS s ON s.lane_id = m.lane_id AND s.rank = m.rank AND s.rank <> s.ref_rank AND s.gaps_agree
        JOIN query_table(matched_items) AS b ON b.lane_id = m.lane_id AND b.number = m.number AND b.nth = m.nth AND b.rank = s.ref_rank
        JOIN _mids AS p ON p.run = b.run AND p.span = b.span AND p.rank = b.rank
        JOIN _mids AS q ON q.run = m.run AND q.span = m.span AND q.rank = m.rank
        WHERE m.is_usable
        WINDOW pair AS (PARTITION BY m.run, m.span, s.ref_rank, m.rank)
    ),
    _parted AS (
        SELECT p.*, 3 * p.since // (p.length + 1) AS third FROM _pairs AS p
    ),
    _thirds AS (
        SELECT
            p.run, p.span, p.ref_rank, p.rank, count(*) AS n,
            median(p.difference) FILTER (p.third = 2) - median(p.difference) FILTER (p.third = 0) AS change,
            median(p.at_ns) FILTER (p.third = 2) - median(p.at_ns) FILTER (p.third = 0) AS apart,
            greatest(mad(p.difference) FILTER (p.third = 0), mad(p.difference) FILTER (p.third = 2)) AS scatter,
            least(count(*) FILTER (p.third = 0), count(*) FILTER (p.third = 2)) AS low_n,
            -- All times are multiples of the resolution.
            list_reduce(list(gcd(p.since, p.own_since)), lambda a, b: gcd(a, b)) AS tick
        FROM _parted AS p
        GROUP BY p.run, p.span, p.ref_rank, p.rank
    ),
    _drifts AS (
        SELECT
            t.run, t.span, t.ref_rank, t.rank, t.n,
            CASE
                WHEN t.low_n >= 5 AND abs(t.change) > t.tick AND abs(t.change) > greatest(3, 8 / sqrt(t.low_n)) * t.scatter AND abs(t.change / t.apart) < 2e-4
                    THEN t.change / t.apart
                ELSE 0
            END AS drift
        FROM _thirds AS t
    ),
    _differences AS (
        SELECT d.run, d.span, d.ref_rank, d.rank, d.n, d.drift, median(p.difference - d.drift * p.at_ns) AS difference
        FROM _drifts AS d
        JOIN _pairs AS p ON p.run = d.run AND p.span = d.span AND p.ref_rank = d.ref_rank AND p.rank = d.rank
        GROUP BY d.run, d.span, d.ref_rank, d.rank, d.n, d.drift
    ),
    _edges AS MATERIALIZED (
        SELECT d.run, d.span, d.ref_rank AS from_rank, d.rank AS to_rank, d.n, d.difference, d.drift, 0::DOUBLE AS at_ns FROM _differences AS d
        UNION ALL
        SELECT d.run, d.span, d.rank, d.ref_rank, d.n, -d.difference, -d.drift, d.difference FROM _differences AS d
    ),
    -- Lowest rank that each rank can reach along edges, and the clock difference between the two.
    _reach(run, span, rank, reference_rank, difference, drift) USING KEY (run, span, rank) AS (
        SELECT k.run, k.span, k.rank, k.rank, 0::DOUBLE, 0::DOUBLE
        FROM rank_spans AS k
        WHERE lib.is_requested(runs, k.run)
        UNION
        (
            SELECT
                e.run, e.span, e.to_rank, r.reference_rank,
                -- A difference is valid at at_ns, which the rank counts at which the edge starts.
                r.difference + e.difference + e.drift * (r.difference - e.at_ns),
                r.drift + e.drift
            FROM _reach AS r
            JOIN _edges AS e ON e.run = r.run AND e.span = r.span AND e.from_rank = r.rank
            JOIN recurring._reach AS v ON v.run = e.run AND v.span = e.span AND v.rank = e.to_rank
            WHERE r.reference_rank < v.reference_rank
            QUALIFY row_number() OVER (PARTITION BY e.run, e.span, e.to_rank ORDER BY r.reference_rank, e.n DESC, e.from_rank) = 1
        )
    ),
    _hosts AS (
        SELECT k.run, k.rank, coalesce(k.host_name, 'rank ' || k.rank) AS domain
        FROM ranks AS k
        WHERE lib.is_requested(runs, k.run)
    ),
    _placed AS (
        SELECT
            r.run, r.span, r.rank, r.reference_rank, r.difference, r.drift, h.domain,
            coalesce(s.mid_ts, 0) AS root_mid_ts, coalesce(o.mid_ts, 0) - coalesce(s.mid_ts, 0) AS apart, o.length
        FROM _reach AS r
        JOIN _hosts AS h ON h.run = r.run AND h.rank = r.rank
        LEFT JOIN _mids AS s ON s.run = r.run AND s.span = r.span AND s.rank = r.reference_rank
        LEFT JOIN _mids AS o ON o.run = r.run AND o.span = r.span AND o.rank = r.rank
    ),
    _domains AS MATERIALIZED (
        SELECT
            p.* EXCLUDE (domain),
            CASE WHEN abs(p.apart - quantile_disc(p.apart, 0.5) OVER _host) > p.length THEN 'rank ' || p.rank ELSE p.domain END AS domain
        FROM _placed AS p
        WINDOW _host AS (PARTITION BY p.run, p.span, p.domain, p.reference_rank)
    ),
    _anchored AS (
        SELECT d.*, min(d.apart) OVER (PARTITION BY d.run, d.span, d.domain, d.reference_rank) AS anchor_ns
        FROM _domains AS d
    ),
    -- Ranks that no collective connects to the root of their host keep their own difference.
    _pooled AS MATERIALIZED (
        SELECT
            a.run, a.span, a.rank, a.reference_rank, a.domain, a.root_mid_ts, a.anchor_ns,
            median(a.difference + (a.apart - a.anchor_ns)) OVER _domain AS difference,
            median(a.drift) OVER _domain AS drift
        FROM _anchored AS a
        WINDOW _domain AS (PARTITION BY a.run, a.span, a.domain, a.reference_rank)
    ),
    _moved AS (
        SELECT
            m.lane_id, m.number, m.nth, p.run, p.span, p.domain, p.reference_rank, p.difference, p.drift,
            m.end_ts - p.anchor_ns - p.root_mid_ts AS at_ns
        FROM query_table(matched_items) AS m
        JOIN _pooled AS p ON p.run = m.run AND p.span = m.span AND p.rank = m.rank
        WHERE m.is_usable
    ),
    _corrected AS MATERIALIZED (
        SELECT
            v.lane_id, v.number, v.nth, v.run, v.span, v.domain, v.reference_rank,
            v.at_ns - round(v.difference + v.drift * (v.at_ns - v.difference))::BIGINT AS end_ns
        FROM _moved AS v
    ),
    _middles AS (
        SELECT c.lane_id, c.number, c.nth, c.reference_rank, median(c.end_ns) AS end_ns
        FROM _corrected AS c
        GROUP BY c.lane_id, c.number, c.nth, c.reference_rank
    ),
    _residuals AS (
        SELECT c.run, c.span, c.domain, c.reference_rank, median(c.end_ns - m.end_ns) AS residual, mad(c.end_ns - m.end_ns) AS spread, count(*) AS n
        FROM _corrected AS c
        JOIN _middles AS m ON m.lane_id = c.lane_id AND m.number = c.number AND m.nth = c.nth AND m.reference_rank = c.reference_rank
        GROUP BY c.run, c.span, c.domain, c.reference_rank
    ),
    _estimates AS (
        SELECT
            p.run, p.rank, p.span, p.domain, p.reference_rank, p.root_mid_ts, p.drift, r.spread, coalesce(r.n, 0) AS n,
            3 * coalesce(r.spread, 0) AS uncertainty,
            p.anchor_ns + round(p.difference + coalesce(r.residual, 0))::BIGINT AS own_offset
        FROM _pooled AS p
        LEFT JOIN _residuals AS r ON r.run = p.run AND r.span = p.span AND r.domain = p.domain AND r.reference_rank = p.reference_rank
    ),
    _compared AS (
        SELECT e.*, quantile_disc(e.own_offset, 0.5) OVER (PARTITION BY e.run, e.span, e.reference_rank) AS usual_offset
        FROM _estimates AS e
    ),
    -- If most clocks are far ahead of the reference, clocks whose difference is within the scatter of the end times get
    -- one offset.
    _final AS (
        SELECT
            c.*,
            CASE
                WHEN c.drift = 0 AND abs(c.usual_offset) > c.uncertainty AND abs(c.own_offset - c.usual_offset) <= c.uncertainty THEN c.usual_offset
                ELSE c.own_offset
            END AS offset_ns
        FROM _compared AS c
    )
SELECT
    f.run, f.rank, f.span, f.domain, f.reference_rank,
    f.offset_ns AS clock_offset_ns,
    f.spread AS spread_ns,
    f.drift,
    f.root_mid_ts + f.offset_ns AS mid_ts,
    f.n AS sample_count,
    -- An offset within the scatter of the end times is not applied.
    f.drift <> 0 OR abs(f.offset_ns) > f.uncertainty AS is_applied
FROM _final AS f
