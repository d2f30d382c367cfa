-- Whether the control and the test can be compared: their properties side by side, and whether they did the same
-- work.
CREATE OR REPLACE MACRO lib.compared_facts(
    -- Name of a relation with the columns of lib.run_facts: the control.
    control_facts,
    -- Name of a relation with the columns of lib.run_facts: the test.
    test_facts,
    -- Name of a relation with the columns of lib.compared_contents.
    contents
) AS TABLE
-- Columns:
--   position       BIGINT [1]  Position of the property in the list, from 1.
--   fact           VARCHAR     Name of the compared property.
--   control_value  VARCHAR     Value of the control; NULL if not recorded.
--   test_value     VARCHAR     Value of the test; NULL if not recorded.
--   verdict        VARCHAR     same, unknown (not recorded for both), limited (may explain a difference) or not comparable (the times cannot be compared).
WITH
    _work AS (
        SELECT c.same_work_pct, c.paired_pct FROM query_table(contents) AS c WHERE c.level = 'step'
    )
SELECT
    c.position AS position, c.fact AS fact, c.fact_value AS control_value, t.fact_value AS test_value,
    CASE
        WHEN c.fact_value IS NULL OR t.fact_value IS NULL THEN 'unknown'
        WHEN c.fact_value = t.fact_value THEN 'same'
        ELSE c.severity
    END AS verdict
FROM query_table(control_facts) AS c
JOIN query_table(test_facts) AS t ON t.fact = c.fact
UNION ALL
SELECT
    10, 'same operators and shapes',
    format('{:.1f} %', w.same_work_pct), format('{:.1f} %', w.same_work_pct),
    CASE
        WHEN w.same_work_pct IS NULL THEN 'unknown'
        WHEN w.same_work_pct >= 90 THEN 'same'
        WHEN w.paired_pct >= 50 THEN 'limited'
        ELSE 'not comparable'
    END
FROM _work AS w
