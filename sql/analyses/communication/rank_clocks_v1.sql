-- Clock offset of each rank relative to the lowest rank, estimated from the ends of matched collectives.
--
-- All ranks leave a collective together. After the base time of each trace is applied, differences between their end
-- times are therefore clock differences. If hosts are known, the ranks of a host share a clock. The estimate is applied
-- to the times of collectives if it exceeds three times its spread, or if the clock drifts; the tables keep the
-- recorded times. Ranks that no collective connects are not compared.
--
-- Title: Clock offset of each rank
-- Shown: rank, host_name, clock_offset_ns, spread_ns, drift, sample_count, is_applied, reason
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a clock is estimated from all steps
-- Reference: none
-- Needs: GPU activity of two ranks that communicate
CREATE OR REPLACE MACRO rank_clocks_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   span             INTEGER         Recording of the rank; each recording may have a different clock.
--   host_name        VARCHAR         Host name; NULL if not recorded.
--   domain           VARCHAR         Clock domain: the host, or the rank if hosts are unknown.
--   reference_rank   INTEGER         Reference rank; NULL if unknown.
--   clock_offset_ns  BIGINT [ns]     Time by which the rank's clock is ahead of the reference rank's clock in the middle of the capture; NULL if unknown.
--   spread_ns        DOUBLE [ns]     Median deviation of the samples from the estimate.
--   drift            DOUBLE [1]      Clock gain per unit of time.
--   sample_count     BIGINT [count]  Number of collective ends that the estimate uses.
--   is_applied       BOOLEAN         Whether the correction is applied to the times of collectives.
--   base_time_ns     BIGINT [ns]     baseTimeNanoseconds of the trace; NULL: the clock may start at any value.
--   reason_code      VARCHAR         Code of the reason in the table messages.
--   reason           VARCHAR         Why the offset is unknown.
WITH
    estimates AS (
        SELECT
            m.run, m.rank, m.span,
            any_value(m.clock_domain) AS domain, any_value(m.clock_reference_rank) AS reference_rank,
            any_value(m.clock_offset_ns) AS estimate, any_value(m.clock_spread_ns) AS spread,
            any_value(m.clock_drift) AS drift, any_value(m.clock_sample_count) AS sample_count,
            bool_or(m.clock_is_applied) AS is_applied
        FROM matched_collectives AS m
        WHERE lib.is_requested(runs, m.run)
        GROUP BY m.run, m.rank, m.span
    ),
    reasoned AS (
        SELECT
            k.run, k.rank, k.span, k.base_time_ns, e.* EXCLUDE (run, rank, span),
            CASE
                WHEN e.run IS NULL THEN 'rank_clocks.no_communication'
                WHEN e.sample_count = 0 THEN 'rank_clocks.not_matched'
            END AS reason_code
        FROM rank_spans AS k
        LEFT JOIN estimates AS e ON e.run = k.run AND e.rank = k.rank AND e.span = k.span
        WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
    )
SELECT
    e.run,
    e.rank,
    e.span,
    h.host_name,
    coalesce(e.domain, h.host_name, 'rank ' || e.rank) AS domain,
    CASE WHEN e.sample_count > 0 THEN e.reference_rank END AS reference_rank,
    CASE WHEN e.sample_count > 0 THEN e.estimate END AS clock_offset_ns,
    CASE WHEN e.sample_count > 0 THEN e.spread END AS spread_ns,
    CASE WHEN e.sample_count > 0 THEN e.drift END AS drift,
    coalesce(e.sample_count, 0) AS sample_count,
    coalesce(e.sample_count > 0 AND e.is_applied, false) AS is_applied,
    e.base_time_ns,
    e.reason_code,
    t.message AS reason
FROM reasoned AS e
JOIN ranks AS h ON h.run = e.run AND h.rank = e.rank
LEFT JOIN messages AS t ON t.code = e.reason_code
ORDER BY e.run, e.rank, e.span
