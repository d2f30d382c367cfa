-- Each rank as a row of points, the starts and ends of its collectives, with the work between them.
--
-- Work is all that passes between two points but the time in which a rank has nothing left to do and a collective
-- goes on: from its last computation or copy to the end of that collective. Times are in the time that all ranks
-- share. Left out, so that they pass as work: collectives that some ranks lack, the first one of a rank in the
-- capture, and those that a rank has left before the last one came, which hold nobody up.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib._rank_works(
    -- Runs to include; NULL means every run.
    runs
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   span           INTEGER         Recording of the rank.
--   position       BIGINT [1]      Place of the point on its rank, from 1.
--   collective_id  BIGINT          Id of the collective, the same on all its ranks.
--   rank_count     BIGINT [count]  Ranks of the collective.
--   is_end         BOOLEAN         Its end on this rank; else its start.
--   at_ns          BIGINT [ns]     When.
--   work_ns        BIGINT [ns]     Work since the point before; 0 for the first.
--   lag_ns         BIGINT [ns]     Of an end: from the start of the last rank to it.
--   transfer_ns    BIGINT [ns]     Of an end: from the start of the last rank to the first end.
WITH
    _met AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.span, m.collective_id, m.found_count, m.start_ns, m.end_ns, m.ts + m.dur AS own_end, m.transfer_ns,
            m.end_ns - max(m.start_ns) OVER (PARTITION BY m.run, m.collective_id) AS lag_ns
        FROM matched_collectives AS m
        WHERE m.is_complete AND NOT m.is_startup AND NOT m.ended_before_last_start AND lib.is_requested(runs, m.run)
    ),
    -- By the rank's own clock: what it does, and when its collectives end.
    _sorted AS (
        SELECT g.run, g.rank, g.span, g.ts AS at_ts, g.ts + g.dur AS until_ts, NULL::BIGINT AS collective_id
        FROM gpu_ops AS g
        WHERE g.class IN ('computation', 'memory') AND NOT g.is_suspect AND lib.is_requested(runs, g.run)
        UNION ALL
        SELECT m.run, m.rank, m.span, m.own_end, NULL, m.collective_id
        FROM _met AS m
    ),
    _fronts AS (
        SELECT
            s.run, s.rank, s.span, s.at_ts, s.collective_id,
            max(s.until_ts) OVER (PARTITION BY s.run, s.rank, s.span ORDER BY s.at_ts, s.collective_id NULLS LAST ROWS UNBOUNDED PRECEDING) AS front_ts
        FROM _sorted AS s
    ),
    _points AS (
        SELECT
            m.run, m.rank, m.span, m.collective_id, m.found_count, false AS is_end, m.start_ns AS at_ns,
            NULL::BIGINT AS lag_ns, NULL::BIGINT AS transfer_ns, NULL::BIGINT AS bare_ns
        FROM _met AS m
        UNION ALL
        SELECT
            m.run, m.rank, m.span, m.collective_id, m.found_count, true, m.end_ns, m.lag_ns, m.transfer_ns,
            -- Nothing before it: all of it.
            coalesce(greatest(0, f.at_ts - f.front_ts), m.own_end)
        FROM _met AS m
        JOIN _fronts AS f ON f.run = m.run AND f.rank = m.rank AND f.span = m.span AND f.collective_id = m.collective_id
    ),
    _placed AS (
        SELECT p.*, row_number() OVER line AS position, coalesce(p.at_ns - lag(p.at_ns) OVER line, 0) AS gap_ns
        FROM _points AS p
        WINDOW line AS (PARTITION BY p.run, p.rank, p.span ORDER BY p.at_ns, p.is_end, p.collective_id)
    )
SELECT
    p.run, p.rank, p.span, p.position, p.collective_id, p.found_count AS rank_count, p.is_end, p.at_ns,
    p.gap_ns - CASE WHEN p.is_end THEN least(p.gap_ns, p.bare_ns) ELSE 0 END AS work_ns,
    p.lag_ns, p.transfer_ns
FROM _placed AS p
