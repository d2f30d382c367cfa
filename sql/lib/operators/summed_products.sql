-- Matrix products of each rank, next to the rank's step time: the input of two recommendations.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.summed_products(
    -- Name of a relation with the columns of lib._advice_products: the selected rows.
    chosen,
    -- Name of a relation with the columns of lib.step_sums.
    spans
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   subject       VARCHAR         Operator with the longest total duration.
--   event_count   BIGINT [count]  Number of kernels.
--   affected_ns   BIGINT [ns]     Total duration.
--   affected_pct  DOUBLE [%]      affected_ns as a share of recorded step time.
--   least_ns      BIGINT [ns]     Roofline time of the kernels.
--   evidence_sql  VARCHAR         Query that returns the roofline analysis of the rank.
--   recorded_ns   BIGINT [ns]     Total recorded step time.
--   compute_ns    BIGINT [ns]     Part of recorded_ns with a computation kernel running.
WITH
    _summed AS (
        SELECT
            p.run, p.rank, arg_max(p.name, (p.total_ns, p.name)) AS subject, sum(p.event_count)::BIGINT AS event_count,
            sum(p.total_ns)::BIGINT AS affected_ns, sum(p.least_ns)::BIGINT AS least_ns
        FROM query_table(chosen) AS p
        GROUP BY p.run, p.rank
    )
SELECT
    u.run, u.rank, u.subject, u.event_count, u.affected_ns, 100 * (u.affected_ns / nullif(s.recorded_ns, 0)) AS affected_pct, u.least_ns,
    format('FROM roofline_v1(runs := [{}], ranks := [{}])', lib.sql_literal(u.run), u.rank) AS evidence_sql,
    s.recorded_ns, s.compute_ns
FROM _summed AS u
JOIN query_table(spans) AS s ON s.run = u.run AND s.rank = u.rank
