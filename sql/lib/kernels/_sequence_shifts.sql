-- Shift between each rank's sequence of collectives in a channel and that of the reference rank.
--
-- Captures start at different times, so leading collectives are missing on some ranks. All ranks leave a collective
-- together, so the gaps between successive ends are equal on all ranks, regardless of clock offsets and drift. The
-- reference is the rank with the most items.
--
-- On every other rank, at most 64 evenly spaced items are compared with the reference at each shift around the shift
-- that the clocks suggest. The search is centered on the median shift by time and extends on either side by 8
-- positions plus the number of median gaps in 20 ms, at most 400 positions: synchronized clocks of hosts differ by
-- less than 20 ms. If less than half of the rank's items lie between the first and the last reference item, the clocks
-- may be further apart, so as many shifts around 0 are tried, too. The score is the mean of ln(1 +
-- difference of the gaps / scatter) in thousandths. It works like a vote: a gap that disagrees by 20 times the scatter
-- still counts a third as much as one that disagrees by 10,000 times. A transient or a hole therefore does not outweigh
-- the many gaps that agree. The scatter is the median difference of the gaps at the best shift among the first 8
-- positions of each search, and at least 1/2000 of the median gap. Shifts are excluded if their overlap is less than
-- half of the largest overlap, or if the share of kernels that differ in function exceeds the smallest share by more
-- than 2 percentage points. Among the shifts within 500 of the best score, a shift of 0 wins if both ranks have the
-- same number of items. Otherwise, the shift with the smallest clock change wins, or the best score if the clocks may
-- be further apart. The gaps agree if the score is at least 1000 below the score of the gaps themselves, which is what
-- the gaps of unrelated sequences differ by.
CREATE OR REPLACE MACRO lib._sequence_shifts(
    -- Name of a relation with lane_id, rank, place (from 0 in the order of time), end_ts, gap (to the next end), n, shape_id.
    items
) AS TABLE
-- Columns:
--   lane_id     BIGINT          Channel number, unique across runs.
--   rank        INTEGER         Rank of the process.
--   ref_rank    INTEGER         Reference rank of the channel.
--   shift       BIGINT [count]  Position in the reference minus position on the rank.
--   score       DOUBLE [1]      Mean logarithm of the gap differences, in thousandths; NULL without gaps.
--   next_score  DOUBLE [1]      Score of the best other shift; NULL if there is none.
--   gaps_agree  BOOLEAN         Whether the gaps agree at this shift; NULL without gaps.
WITH
    _refs AS MATERIALIZED (
        SELECT i.lane_id, arg_min(i.rank, (-i.n, i.rank)) AS ref_rank, max(i.n) AS ref_n
        FROM query_table(items) AS i
        GROUP BY i.lane_id
    ),
    -- Channel and position are packed into one number: for a join on two columns, the engine may first form all pairs
    -- of a channel.
    _ref_items AS MATERIALIZED (
        SELECT i.lane_id, i.position, (i.lane_id << 32) + i.position AS at_id, i.end_ts, i.gap, i.shape_id
        FROM query_table(items) AS i
        JOIN _refs AS r ON r.lane_id = i.lane_id AND r.ref_rank = i.rank
    ),
    _anchors AS MATERIALIZED (
        SELECT
            i.lane_id, i.rank, i.position, (i.lane_id << 32) + i.position AS at_id, i.end_ts, i.gap, i.shape_id,
            i.n = r.ref_n AS is_as_long
        FROM query_table(items) AS i
        JOIN _refs AS r ON r.lane_id = i.lane_id AND r.ref_rank <> i.rank
        -- Items at which the floor of position * 64 / n changes are evenly spaced.
        WHERE i.n <= 64 OR i.position = 0 OR (i.position * 64) // i.n <> ((i.position - 1) * 64) // i.n
    ),
    -- In sort order, the last reference item before an anchor is given by a running maximum.
    _sorted AS (
        SELECT a.lane_id, a.rank, a.position, a.end_ts, NULL::BIGINT AS ref_position FROM _anchors AS a
        UNION ALL
        SELECT e.lane_id, NULL, NULL, e.end_ts, e.position FROM _ref_items AS e
    ),
    _placed AS (
        SELECT
            s.lane_id, s.rank, s.position,
            max(s.ref_position) OVER (PARTITION BY s.lane_id ORDER BY s.end_ts, s.ref_position NULLS LAST ROWS UNBOUNDED PRECEDING) AS before_position
        FROM _sorted AS s
    ),
    _centers AS (
        SELECT p.lane_id, p.rank, median(coalesce(p.before_position, 0) - p.position)::BIGINT AS center,
            2 * count_if(coalesce(p.before_position < r.ref_n - 1, false)) < count(*) AS is_apart
        FROM _placed AS p
        JOIN _refs AS r ON r.lane_id = p.lane_id
        WHERE p.rank IS NOT NULL
        GROUP BY p.lane_id, p.rank
    ),
    _reaches AS MATERIALIZED (
        SELECT
            e.lane_id, least(400, 8 + ceil(20000000 / greatest(1, coalesce(median(e.gap), 1))))::BIGINT AS reach,
            greatest(1, coalesce(median(e.gap), 1)) / 2000 AS unit
        FROM _ref_items AS e
        GROUP BY e.lane_id
    ),
    _windows AS MATERIALIZED (
        SELECT
            c.lane_id, c.rank, c.center, c.is_apart, r.reach, r.unit
        FROM _centers AS c
        JOIN _reaches AS r ON r.lane_id = c.lane_id
    ),
    _tried AS MATERIALIZED (
        SELECT s.lane_id, s.rank, s.shift, s.unit, s.is_apart, bool_or(abs(s.shift - s.center) <= 8) AS is_near
        FROM (
            SELECT
                w.lane_id, w.rank, unnest(range(w.center - w.reach, w.center + w.reach + 1)) AS shift, w.center, w.unit,
                w.is_apart
            FROM _windows AS w
            UNION ALL
            SELECT w.lane_id, w.rank, unnest(range(-w.reach, w.reach + 1)), 0, w.unit, w.is_apart
            FROM _windows AS w
            WHERE w.is_apart
        ) AS s
        GROUP BY s.lane_id, s.rank, s.shift, s.unit, s.is_apart
    ),
    _units AS MATERIALIZED (
        SELECT d.lane_id, d.rank, greatest(any_value(d.least_unit), min(d.middle)) AS unit
        FROM (
            SELECT a.lane_id, a.rank, t.shift, any_value(t.unit) AS least_unit, median(abs(a.gap - e.gap)) AS middle
            FROM _anchors AS a
            JOIN _tried AS t ON t.lane_id = a.lane_id AND t.rank = a.rank AND t.is_near
            JOIN _ref_items AS e ON e.at_id = a.at_id + t.shift
            GROUP BY a.lane_id, a.rank, t.shift
            QUALIFY 2 * count(*) >= max(count(*)) OVER (PARTITION BY a.lane_id, a.rank)
        ) AS d
        GROUP BY d.lane_id, d.rank
    ),
    _scored AS (
        SELECT
            a.lane_id, a.rank, t.shift,
            count(*) AS overlap,
            count_if(a.shape_id <> e.shape_id) AS mismatch_count,
            -- Integers, so the sum does not depend on the number of threads.
            avg((1000 * ln(1 + abs(a.gap - e.gap) / u.unit))::INTEGER) FILTER (a.gap IS NOT NULL AND e.gap IS NOT NULL) AS score,
            avg((1000 * ln(1 + abs(e.gap) / u.unit))::INTEGER) FILTER (a.gap IS NOT NULL AND e.gap IS NOT NULL) AS gap_score,
            avg(a.end_ts - e.end_ts) AS rough_offset,
            any_value(a.is_as_long) AS is_as_long,
            any_value(t.is_apart) AS is_apart
        FROM _anchors AS a
        JOIN _tried AS t ON t.lane_id = a.lane_id AND t.rank = a.rank
        JOIN _units AS u ON u.lane_id = a.lane_id AND u.rank = a.rank
        JOIN _ref_items AS e ON e.at_id = a.at_id + t.shift
        GROUP BY a.lane_id, a.rank, t.shift
    ),
    -- With little overlap, a shift may fit by chance.
    _enough AS (
        SELECT s.*, s.mismatch_count / s.overlap AS mismatch
        FROM _scored AS s
        QUALIFY s.overlap * 2 >= max(s.overlap) OVER (PARTITION BY s.lane_id, s.rank)
    ),
    _alike AS (
        SELECT e.*
        FROM _enough AS e
        QUALIFY e.mismatch <= min(e.mismatch) OVER (PARTITION BY e.lane_id, e.rank) + 0.02
    ),
    _ranked AS (
        SELECT
            a.*,
            min(a.score) OVER (PARTITION BY a.lane_id, a.rank) AS best_score
        FROM _alike AS a
    ),
    _chosen AS (
        SELECT r.*
        FROM _ranked AS r
        WHERE r.score IS NULL OR r.score <= r.best_score + 500
        QUALIFY row_number() OVER (
            PARTITION BY r.lane_id, r.rank
            ORDER BY
                r.shift = 0 AND r.is_as_long DESC, CASE WHEN r.is_apart THEN r.score ELSE abs(r.rough_offset) END,
                abs(r.shift), r.shift
        ) = 1
    ),
    -- Best score of all shifts except the selected one.
    _others AS (
        SELECT r.lane_id, r.rank, c.shift, min(r.score) AS next_score
        FROM _ranked AS r
        JOIN _chosen AS c ON c.lane_id = r.lane_id AND c.rank = r.rank AND c.shift <> r.shift
        GROUP BY r.lane_id, r.rank, c.shift
    )
SELECT c.lane_id, c.rank, f.ref_rank, c.shift, c.score, o.next_score, c.score < c.gap_score - 1000 AS gaps_agree
FROM _chosen AS c
JOIN _refs AS f ON f.lane_id = c.lane_id
LEFT JOIN _others AS o ON o.lane_id = c.lane_id AND o.rank = c.rank
UNION ALL
SELECT f.lane_id, f.ref_rank, f.ref_rank, 0, 0, NULL, true
FROM _refs AS f
