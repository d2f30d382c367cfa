-- Distribution of the steps of each side: the median, and a group of steps that is slower than the others.
--
-- The logarithms of the sorted step times are split into two groups that minimize the squared deviations within the
-- groups. The slower group counts if its mean exceeds the mean of the other group by 2 % and by five standard
-- deviations within the groups. Fewer than four steps are not split.
--
-- Reference: Otsu's threshold, Jenks' natural breaks
CREATE OR REPLACE MACRO lib._slow_steps(
    -- Name of a relation with side, step, step_ns: one row per step.
    step_rows
) AS TABLE
-- Columns:
--   side        VARCHAR         Side of the comparison: control or test.
--   step_count  BIGINT [count]  Number of steps.
--   median_ns   DOUBLE [ns]     Median step time.
--   least_ns    BIGINT [ns]     Shortest step time.
--   most_ns     BIGINT [ns]     Longest step time.
--   slow_share  DOUBLE [1]      Share of the steps in the slower group; NULL if the steps are one group.
--   slow_ratio  DOUBLE [1]      Mean of the slower group / mean of the other group; NULL if the steps are one group.
--   slow_text   VARCHAR         Description of the slower group; NULL if the steps are one group.
WITH
    _placed AS MATERIALIZED (
        SELECT
            s.side, s.step, round(s.step_ns)::BIGINT AS step_ns,
            -- Integers in units of 1e-12, so sums are exact in any order.
            round(1e12 * ln(greatest(s.step_ns, 1)))::HUGEINT AS size,
            row_number() OVER (PARTITION BY s.side ORDER BY s.step) AS position,
            row_number() OVER (PARTITION BY s.side ORDER BY s.step_ns, s.step) AS nth,
            count(*) OVER (PARTITION BY s.side) AS step_count
        FROM query_table(step_rows) AS s
    ),
    _running AS (
        SELECT
            p.side, p.nth, p.step_count,
            sum(p.size) OVER faster AS size_sum, sum(p.size * p.size) OVER faster AS square_sum,
            sum(p.size) OVER slower AS rest_sum, sum(p.size * p.size) OVER slower AS rest_squares
        FROM _placed AS p
        WINDOW
            faster AS (PARTITION BY p.side ORDER BY p.nth ROWS UNBOUNDED PRECEDING),
            slower AS (PARTITION BY p.side ORDER BY p.nth ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
    ),
    _splits AS (
        SELECT
            r.side, r.nth AS fast_count,
            (r.rest_sum / (r.step_count - r.nth) - r.size_sum / r.nth) / 1e12 AS distance,
            (r.square_sum * r.nth - r.size_sum * r.size_sum)::DOUBLE / r.nth / 1e24
                + (r.rest_squares * (r.step_count - r.nth) - r.rest_sum * r.rest_sum)::DOUBLE / (r.step_count - r.nth) / 1e24 AS squares,
            r.step_count
        FROM _running AS r
        WHERE r.nth < r.step_count AND r.step_count >= 4
    ),
    _best AS (
        SELECT s.side, arg_min({'fast_count': s.fast_count, 'distance': s.distance, 'squares': s.squares, 'step_count': s.step_count}, (s.squares, s.fast_count)) AS split
        FROM _splits AS s
        GROUP BY s.side
    ),
    _groups AS (
        SELECT b.side, b.split.fast_count AS fast_count
        FROM _best AS b
        WHERE b.split.distance >= greatest(ln(1.02), 5 * sqrt(b.split.squares / (b.split.step_count - 2)))
    ),
    _sides AS (
        SELECT
            p.side, p.step_count, median(p.step_ns) AS median_ns, min(p.step_ns) AS least_ns, max(p.step_ns) AS most_ns,
            count(*) FILTER (p.nth > g.fast_count) AS slow_count,
            avg(p.step_ns) FILTER (p.nth > g.fast_count) / avg(p.step_ns) FILTER (p.nth <= g.fast_count) AS slow_ratio,
            list(p.step ORDER BY p.position) FILTER (p.nth > g.fast_count) AS slow_steps,
            list(p.position ORDER BY p.position) FILTER (p.nth > g.fast_count) AS places
        FROM _placed AS p
        LEFT JOIN _groups AS g ON g.side = p.side
        GROUP BY p.side, p.step_count
    ),
    _shaped AS (
        SELECT
            s.*,
            s.places[2] - s.places[1] AS period,
            s.slow_ratio >= 2 AS is_multiple,
            CASE
                WHEN s.slow_ratio < 1.1 THEN printf('%.1f %%', 100 * (s.slow_ratio - 1))
                WHEN s.slow_ratio < 2 THEN printf('%.0f %%', 100 * (s.slow_ratio - 1))
                ELSE printf('%.1f', s.slow_ratio)
            END AS increase
        FROM _sides AS s
    ),
    _described AS (
        SELECT
            h.*,
            CASE
                WHEN h.slow_count = 0 THEN NULL
                WHEN h.slow_count = 1 THEN lib.message('slow_steps.one_step', {'slow_count': h.slow_count, 'step_count': h.step_count, 'increase': h.increase, 'is_multiple': h.is_multiple, 'first_step': h.slow_steps[1]})
                WHEN h.places[1] = h.step_count - h.slow_count + 1 THEN lib.message('slow_steps.from_step', {'slow_count': h.slow_count, 'step_count': h.step_count, 'increase': h.increase, 'is_multiple': h.is_multiple, 'first_step': h.slow_steps[1]})
                WHEN h.places[-1] = h.slow_count THEN lib.message('slow_steps.up_to_step', {'slow_count': h.slow_count, 'step_count': h.step_count, 'increase': h.increase, 'is_multiple': h.is_multiple, 'last_step': h.slow_steps[-1]})
                WHEN
                    h.slow_count > 2 AND h.places[1] <= h.period AND h.places[-1] > h.step_count - h.period
                    AND h.places[-1] - h.places[1] = h.period * (h.slow_count - 1)
                    AND list_aggregate(list_transform(h.places, lambda p: (p - h.places[1]) % h.period), 'max') = 0
                    THEN lib.message('slow_steps.periodic', {'slow_count': h.slow_count, 'step_count': h.step_count, 'increase': h.increase, 'is_multiple': h.is_multiple, 'period': h.period})
                ELSE lib.message('slow_steps.listed', {'slow_count': h.slow_count, 'step_count': h.step_count, 'increase': h.increase, 'is_multiple': h.is_multiple, 'steps': array_to_string(h.slow_steps[:5], ', '), 'is_cut': h.slow_count > 5})
            END AS message
        FROM _shaped AS h
    )
SELECT
    d.side, d.step_count, d.median_ns, d.least_ns, d.most_ns,
    CASE WHEN d.slow_count > 0 THEN d.slow_count / d.step_count END AS slow_share,
    d.slow_ratio,
    lib.message_text(t.message, d.message.fields) AS slow_text
FROM _described AS d
LEFT JOIN messages AS t ON t.code = d.message.code
