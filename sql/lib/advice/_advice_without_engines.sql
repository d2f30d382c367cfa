-- Advice of general rules, unless rules about serving engines or expert parallelism explain the same time.
--
-- A general rule about idle time or exposed transfer is omitted if the specific rules explain at least half of its
-- time.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib._advice_without_engines(
    -- Name of a relation with the columns of lib._advice_data_loading: findings of all other rules.
    found,
    -- Name of a relation with the columns of lib._advice_data_loading: findings of the rules about engines and expert
    -- parallelism.
    of_engines
) AS TABLE
-- Columns: those of _advice_data_loading.
WITH
    _claimed AS (
        SELECT e.run, e.rank, lib.advice_part(e.rule) AS part, sum(e.ceiling_ns) AS ns
        FROM query_table(of_engines) AS e
        GROUP BY ALL
    )
SELECT f.*
FROM query_table(found) AS f
LEFT JOIN _claimed AS c
    ON c.run = f.run AND c.rank = f.rank AND c.part = lib.advice_part(f.rule)
    AND f.rule IN ('launch_bound', 'host_work', 'queued_gaps', 'unlinked_gaps', 'exposed_transfer')
WHERE c.run IS NULL OR 2 * c.ns < f.ceiling_ns
