-- Time that each rank's unmatched collectives take beyond what their messages need on a slow link.
--
-- The slow link is assumed to have a tenth of the bandwidth between devices of the same host, or 5 GB/s if the device
-- model is unknown; networks between hosts are at least that fast. Starting a collective is assumed to take 50 us.
-- Time beyond start and transfer is spent waiting for another rank. Collectives matched with other ranks are
-- excluded, because their waits are measured.
CREATE OR REPLACE MACRO lib._advice_message_sizes(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step.
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   total_ns       BIGINT [ns]     Total duration of the rank's unmatched collectives, whose waits are unknown.
--   sized_ns       BIGINT [ns]     Part of total_ns in collectives with a known message size.
--   excess_ns      BIGINT [ns]     Part of sized_ns beyond the time that the messages need.
--   excess_count   BIGINT [count]  Number of collectives with such an excess.
--   median_bytes   BIGINT [bytes]  Median message size of these collectives.
--   collective     VARCHAR         Kind of collective with the largest excess.
--   event_id       BIGINT          event_id of the collective with the largest excess; the first one if several are equal.
WITH
    _links AS (
        SELECT d.run, d.rank, d.device, lib.link_peak(d.name) AS peak FROM devices AS d
    ),
    _sized AS (
        SELECT
            c.run, c.rank, c.event_id, c.collective, c.ts, c.dur, coalesce(lib.waits_are_known(c.found_count, c.end_times_match, c.is_p2p, c.on_host), false) AS is_known, l.peak,
            lib.message_bytes(c.collective, c.elem_type, c.in_elems, c.out_elems) AS message_size,
            lib.busbw_factor(c.collective, c.group_size) AS factor
        FROM lib.scoped_collectives(runs, ranks, steps, include_last_profiler_step) AS c
        LEFT JOIN _links AS l ON l.run = c.run AND l.rank = c.rank AND l.device = c.device
        WHERE NOT c.on_host
    ),
    _needed AS (
        SELECT s.*, CASE WHEN NOT s.is_known THEN 50000 + s.message_size * coalesce(s.factor, 1) / coalesce(s.peak / 10, 5.0) END AS needed_ns
        FROM _sized AS s
    ),
    _excess AS (
        SELECT n.*, CASE WHEN n.needed_ns < n.dur THEN n.dur - round(n.needed_ns)::BIGINT ELSE 0 END AS excess
        FROM _needed AS n
    )
SELECT
    e.run, e.rank,
    coalesce(sum(e.dur) FILTER (NOT e.is_known), 0)::BIGINT AS total_ns,
    coalesce(sum(e.dur) FILTER (e.needed_ns IS NOT NULL), 0)::BIGINT AS sized_ns,
    sum(e.excess)::BIGINT AS excess_ns,
    count_if(e.excess > 0)::BIGINT AS excess_count,
    quantile_disc(e.message_size, 0.5) FILTER (e.excess > 0)::BIGINT AS median_bytes,
    arg_max(e.collective, (e.excess, -e.ts, -e.event_id)) AS collective,
    arg_max(e.event_id, (e.excess, -e.ts, -e.event_id)) AS event_id
FROM _excess AS e
GROUP BY e.run, e.rank
