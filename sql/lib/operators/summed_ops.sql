-- Count and duration of operations, grouped by the selected keys.
CREATE OR REPLACE MACRO lib.summed_ops(
    -- Name of a relation with lane, side, category, name, shapes, dur; lane is any grouping key.
    single_ops,
    -- Whether to strip template arguments, parameters and return types from names.
    by_short_name,
    -- Whether operators with different input shapes have separate rows.
    by_shapes,
    -- Whether equal names with different sides or categories have separate rows.
    by_category,
    -- Whether profiler steps with different numbers have separate rows; otherwise all are named ProfilerStep.
    by_step_number
) AS TABLE
-- Columns:
--   lane      ANY             Grouping key.
--   side      VARCHAR         host or device; NULL without by_category.
--   category  VARCHAR         Category; NULL without by_category.
--   name      VARCHAR         Name without object addresses, or short name with by_short_name; ProfilerStep for all steps.
--   shapes    VARCHAR         Input shapes as JSON; NULL without by_shapes.
--   op_count  BIGINT [count]  Number of operations.
--   sum_ns    BIGINT [ns]     Total duration.
--   min_ns    BIGINT [ns]     Shortest duration.
--   max_ns    BIGINT [ns]     Longest duration.
WITH
    _summed AS (
        SELECT
            o.lane,
            CASE WHEN by_category THEN o.side END AS side,
            CASE WHEN by_category THEN o.category END AS category,
            o.name,
            CASE WHEN by_shapes THEN o.shapes END AS shapes,
            count(*) AS op_count,
            sum(o.dur) AS sum_ns,
            min(o.dur) AS min_ns,
            max(o.dur) AS max_ns
        FROM query_table(single_ops) AS o
        GROUP BY ALL
    )
SELECT
    s.lane AS lane,
    s.side AS side,
    s.category AS category,
    CASE
        WHEN NOT by_step_number AND regexp_full_match(s.name, 'ProfilerStep\s*#\s*\d+') THEN 'ProfilerStep'
        WHEN by_short_name THEN lib.frame_name(n.short_name)
        ELSE lib.frame_name(s.name)
    END AS name,
    s.shapes AS shapes,
    sum(s.op_count)::BIGINT AS op_count,
    sum(s.sum_ns)::BIGINT AS sum_ns,
    min(s.min_ns) AS min_ns,
    max(s.max_ns) AS max_ns
FROM _summed AS s
JOIN lib.short_names('_summed') AS n ON n.name = s.name
GROUP BY ALL
