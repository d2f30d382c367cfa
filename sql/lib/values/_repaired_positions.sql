-- Positions of the items of a sequence, matched by time, for sequences that no single shift fits.
--
-- The cause is an event missing in the middle of the sequence, on the rank or on the reference.
--
-- A sequence of at least sixteen items is broken if, under its shift, more than a tenth of the items (and more than
-- two) differ too much from the median clock difference. Too much means more than a quarter of the median gap. The clock difference is then estimated from the items on either side of the hole whose gaps agree. Each
-- item is assigned to the reference item that ends closest in time. The result is used only if 95 % of the items get
-- a position of their own; otherwise, the collectives do not end together and there is no hole to repair.
CREATE OR REPLACE MACRO lib._repaired_positions(
    -- Name of a relation with lane_id, rank, ref_rank, place, ordinal (position in the reference, by the shift),
    -- end_ts and gap.
    shifted_items
) AS TABLE
-- Columns:
--   lane_id   BIGINT      Channel number, unique across runs.
--   rank      INTEGER     Rank of the process.
--   position  BIGINT [1]  Position in the sequence of the rank.
--   ordinal   BIGINT [1]  Position in the reference that the item belongs to, or that it follows.
--   nth       BIGINT [1]  1 if the item belongs to that position; 2, 3, … for later items missing from the reference.
WITH
    _ref_items AS MATERIALIZED (
        SELECT i.lane_id, i.position, i.end_ts, i.gap
        FROM query_table(shifted_items) AS i
        WHERE i.rank = i.ref_rank
    ),
    _tolerances AS (
        SELECT e.lane_id, 0.25 * median(e.gap) AS tolerance, min(e.end_ts) AS first_end
        FROM _ref_items AS e
        GROUP BY e.lane_id
    ),
    _paired AS MATERIALIZED (
        SELECT
            i.lane_id, i.rank, t.first_end, (e.end_ts - t.first_end) // 1000 AS at_us, i.end_ts - e.end_ts AS difference,
            abs(i.gap - e.gap) AS gap_difference, t.tolerance
        FROM query_table(shifted_items) AS i
        JOIN _ref_items AS e ON e.lane_id = i.lane_id AND e.position = i.ordinal
        JOIN _tolerances AS t ON t.lane_id = i.lane_id
        WHERE i.rank <> i.ref_rank
    ),
    _middles AS (
        SELECT p.lane_id, p.rank, median(p.difference) AS middle
        FROM _paired AS p
        GROUP BY p.lane_id, p.rank
    ),
    _broken AS MATERIALIZED (
        SELECT p.lane_id, p.rank
        FROM _paired AS p
        JOIN _middles AS m ON m.lane_id = p.lane_id AND m.rank = p.rank
        GROUP BY p.lane_id, p.rank
        HAVING count(*) >= 16 AND count_if(abs(p.difference - m.middle) > p.tolerance) > greatest(2, 0.1 * count(*))
    ),
    -- Limit for gaps that agree, derived from the closest tenth of all gaps, and at least a thousandth of the median
    -- gap.
    _close AS (
        SELECT p.lane_id, p.rank, 10 * quantile_cont(p.gap_difference, 0.1) + 0.004 * any_value(p.tolerance) AS limit_ns
        FROM _paired AS p
        JOIN _broken AS b ON b.lane_id = p.lane_id AND b.rank = p.rank
        GROUP BY p.lane_id, p.rank
    ),
    _agreeing AS (
        SELECT p.lane_id, p.rank, p.first_end, p.at_us, p.difference, p.tolerance, median(p.difference) OVER (PARTITION BY p.lane_id, p.rank) AS middle
        FROM _paired AS p
        JOIN _close AS c ON c.lane_id = p.lane_id AND c.rank = p.rank AND p.gap_difference <= c.limit_ns
    ),
    -- Integer sums (of microseconds and nanoseconds) do not depend on the order of the rows.
    _sums AS (
        SELECT
            a.lane_id, a.rank, any_value(a.tolerance) AS tolerance, any_value(a.first_end) AS first_end, count(*) AS n,
            sum(a.at_us) AS sum_x, sum(a.difference) AS sum_y,
            sum(a.at_us::HUGEINT * a.at_us) AS sum_xx, sum(a.at_us::HUGEINT * a.difference) AS sum_xy
        FROM _agreeing AS a
        WHERE abs(a.difference - a.middle) <= a.tolerance
        GROUP BY a.lane_id, a.rank
    ),
    _clocks AS (
        SELECT
            s.lane_id, s.rank, s.tolerance, s.first_end, s.sum_y / s.n AS difference, 1000 * s.sum_x / s.n AS at_ns,
            (s.n * s.sum_xy - s.sum_x * s.sum_y) / nullif(s.n * s.sum_xx - s.sum_x * s.sum_x, 0) / 1000 AS slope,
            s.n
        FROM _sums AS s
    ),
    _moved AS MATERIALIZED (
        SELECT
            i.lane_id, i.rank, i.position, c.tolerance,
            -- A clock drifts by less than 1e-4; a steeper slope comes from a hole.
            i.end_ts - round(c.difference + CASE WHEN c.n >= 16 AND abs(c.slope) < 1e-4 THEN c.slope ELSE 0 END * ((i.end_ts - c.first_end) - c.at_ns))::BIGINT
                AS end_ts
        FROM query_table(shifted_items) AS i
        JOIN _clocks AS c ON c.lane_id = i.lane_id AND c.rank = i.rank
    ),
    _sorted AS (
        SELECT m.lane_id, m.rank, m.position, m.tolerance, m.end_ts, NULL::BIGINT AS ref_position FROM _moved AS m
        UNION ALL
        SELECT e.lane_id, NULL, NULL, NULL, e.end_ts, e.position
        FROM _ref_items AS e
        WHERE EXISTS (FROM _broken AS b WHERE b.lane_id = e.lane_id)
    ),
    -- Previous reference item in time, which also determines the next item.
    _sided AS (
        SELECT
            s.*, max(s.ref_position) OVER (PARTITION BY s.lane_id ORDER BY s.end_ts, s.ref_position NULLS LAST ROWS UNBOUNDED PRECEDING) AS before_position
        FROM _sorted AS s
    ),
    _nearest AS (
        SELECT
            s.lane_id, s.rank, s.position, s.tolerance,
            s.end_ts - b.end_ts AS behind_ns, a.end_ts - s.end_ts AS ahead_ns,
            coalesce(s.before_position, -1) AS before_position
        FROM _sided AS s
        LEFT JOIN _ref_items AS b ON b.lane_id = s.lane_id AND b.position = s.before_position
        LEFT JOIN _ref_items AS a ON a.lane_id = s.lane_id AND a.position = coalesce(s.before_position, -1) + 1
        WHERE s.rank IS NOT NULL
    ),
    _fitted AS (
        SELECT
            n.lane_id, n.rank, n.position,
            CASE
                WHEN n.ahead_ns <= n.tolerance AND (n.behind_ns IS NULL OR n.ahead_ns < n.behind_ns) THEN n.before_position + 1
                ELSE n.before_position
            END AS ordinal,
            coalesce(n.ahead_ns <= n.tolerance, false) OR coalesce(n.behind_ns <= n.tolerance, false) AS fits
        FROM _nearest AS n
    ),
    _healed AS (
        SELECT f.lane_id, f.rank
        FROM _fitted AS f
        GROUP BY f.lane_id, f.rank
        HAVING count(DISTINCT f.ordinal) FILTER (f.fits) >= 0.95 * count(*)
    ),
    _first AS (
        SELECT
            f.lane_id, f.rank, f.position, f.ordinal,
            f.fits AND row_number() OVER (PARTITION BY f.lane_id, f.rank, f.ordinal, f.fits ORDER BY f.position) = 1 AS belongs
        FROM _fitted AS f
        JOIN _healed AS h ON h.lane_id = f.lane_id AND h.rank = f.rank
    )
SELECT
    f.lane_id, f.rank, f.position, f.ordinal,
    CASE
        WHEN f.belongs THEN 1
        ELSE 1 + row_number() OVER (PARTITION BY f.lane_id, f.rank, f.ordinal, f.belongs ORDER BY f.position)
    END AS nth
FROM _first AS f
