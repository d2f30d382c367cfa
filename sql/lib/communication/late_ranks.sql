-- Which ranks are late: the verdict on what lib._straggler_signals measures.
--
-- A rank is late where it waits less than the ranks it meets by min_pct of the capture, also without its
-- largest single delay; where it came last at least twice; where chance would do that in 6 of 1,000 jobs at
-- most; and where the ends of nine in ten of its collectives agree, and of eight in ten of the run's.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.late_ranks(
    -- Runs to include; NULL means every run.
    runs,
    -- Smallest share of the capture that others have to wait more, in percent.
    min_pct
) AS TABLE
-- Columns:
--   run                 VARCHAR         Run name.
--   rank                INTEGER         Rank of the process.
--   run_ns              BIGINT [ns]     Length of the capture: median over the ranks.
--   collective_count    BIGINT [count]  Collectives that were looked at.
--   last_arrival_count  BIGINT [count]  Those in which it came last.
--   wait_ns             BIGINT [ns]     Its waits.
--   peer_count          BIGINT [count]  Ranks that it shares groups with.
--   peer_wait_ns        BIGINT [ns]     Their waits: median.
--   excess_ns           BIGINT [ns]     What it waits less than they.
--   wait_caused_ns      BIGINT [ns]     Waits of others for it, without what it had waited itself more than they before.
--   lead_kept           DOUBLE [1]      Share of its lateness that is left without its largest single event.
--   lateness_z          DOUBLE [1]      Its lateness in standard deviations of chance.
--   lateness_z_limit    DOUBLE [1]      What the largest of as many ranks exceeds by chance in 6 of 1,000 jobs.
--   trusted_share       DOUBLE [1]      Share of its collectives whose ends agree.
--   run_trusted_share   DOUBLE [1]      The same of the run.
--   is_trusted          BOOLEAN         Enough ends agree; else nothing is known.
--   is_late             BOOLEAN         It holds up the others.
WITH
    _signals AS (
        SELECT s.*, s.trusted_share >= 0.9 AND s.run_trusted_share >= 0.8 AS is_trusted
        FROM lib._straggler_signals(runs) AS s
    )
SELECT
    s.*,
    coalesce(
        s.is_trusted
        AND s.excess_ns * s.lead_kept >= s.run_ns * min_pct / 100
        AND s.last_arrival_count >= 2
        AND s.lateness_z >= s.lateness_z_limit,
        false
    ) AS is_late
FROM _signals AS s
