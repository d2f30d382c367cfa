-- Operations of the control and the test, compared in one row per operation: counts, durations and kind of change.
CREATE OR REPLACE MACRO lib.ops_difference(
    -- Name of a relation with side, category, name, shapes, op_count, sum_ns, one row per operation: the control.
    control_ops,
    -- Name of a relation with side, category, name, shapes, op_count, sum_ns, one row per operation: the test.
    test_ops
) AS TABLE
-- Columns:
--   side            VARCHAR         Side on which the operation runs: host or device.
--   category        VARCHAR         Category of the operation.
--   name            VARCHAR         Name of the event.
--   shapes          VARCHAR         Input shapes.
--   count_change    VARCHAR         Change in count: added, deleted, increased, decreased or unchanged.
--   control_count   BIGINT [count]  Number of operations in the control; 0 if none.
--   test_count      BIGINT [count]  Number of operations in the test; 0 if none.
--   diff_count      BIGINT [count]  Test minus control.
--   control_sum_ns  BIGINT [ns]     Total duration in the control.
--   test_sum_ns     BIGINT [ns]     Total duration in the test.
--   diff_sum_ns     BIGINT [ns]     Test minus control.
--   diff_pct        DOUBLE [%]      diff_sum_ns as a share of control_sum_ns; NULL if that is 0.
WITH
    _sides AS (
        SELECT c.side, c.category, c.name, c.shapes, c.op_count AS control_count, 0::BIGINT AS test_count, c.sum_ns AS control_sum, 0::BIGINT AS test_sum
        FROM query_table(control_ops) AS c
        UNION ALL
        SELECT t.side, t.category, t.name, t.shapes, 0, t.op_count, 0, t.sum_ns
        FROM query_table(test_ops) AS t
    ),
    _both AS (
        SELECT
            s.side,
            s.category,
            s.name,
            s.shapes,
            sum(s.control_count)::BIGINT AS control_count,
            sum(s.test_count)::BIGINT AS test_count,
            sum(s.control_sum)::BIGINT AS control_sum,
            sum(s.test_sum)::BIGINT AS test_sum
        FROM _sides AS s
        GROUP BY ALL
    )
SELECT
    b.side AS side,
    b.category AS category,
    b.name AS name,
    b.shapes AS shapes,
    CASE
        WHEN b.control_count = 0 THEN 'added'
        WHEN b.test_count = 0 THEN 'deleted'
        WHEN b.test_count > b.control_count THEN 'increased'
        WHEN b.test_count < b.control_count THEN 'decreased'
        ELSE 'unchanged'
    END AS count_change,
    b.control_count AS control_count,
    b.test_count AS test_count,
    b.test_count - b.control_count AS diff_count,
    b.control_sum AS control_sum_ns,
    b.test_sum AS test_sum_ns,
    b.test_sum - b.control_sum AS diff_sum_ns,
    100::DOUBLE * (b.test_sum - b.control_sum) / nullif(b.control_sum, 0)::DOUBLE AS diff_pct
FROM _both AS b
