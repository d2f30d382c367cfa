-- Sequence of points of each rank, the starts and ends of its collectives, with the work between them.
--
-- Work is all time between two points except waiting time. Waiting lasts from the rank's last computation or copy to
-- the end of a collective. Times are on the clock shared by all ranks. Some collectives are not points, so they count
-- as work: those missing on some ranks, and the first one of a rank in the capture. The same holds for those that a
-- rank left before the last one arrived, because they delay no rank.
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
--   position       BIGINT [1]      Position of the point on its rank, from 1.
--   collective_id  BIGINT          Id of the collective, the same on all its ranks.
--   rank_count     BIGINT [count]  Number of ranks of the collective.
--   is_end         BOOLEAN         Whether the point is its end on this rank, otherwise its start.
--   at_ns          BIGINT [ns]     Time of the point on the clock shared by all ranks.
--   work_ns        BIGINT [ns]     Work since the previous point; 0 for the first.
--   lag_ns         BIGINT [ns]     For an end: time from the last rank's start to it.
--   transfer_ns    BIGINT [ns]     For an end: time from the last rank's start to the first end.
WITH
    _met AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.span, m.collective_id, m.found_count, m.start_ns, m.end_ns, m.ts + m.dur AS own_end, m.transfer_ns,
            m.end_ns - max(m.start_ns) OVER (PARTITION BY m.run, m.collective_id) AS lag_ns
        FROM matched_collectives AS m
        WHERE m.is_complete AND NOT m.is_startup AND NOT m.ended_before_last_start AND lib.is_requested(runs, m.run)
    ),
    -- On the rank's own clock: its activity, and the ends of its collectives.
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
            -- No activity before it: all of the time.
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
