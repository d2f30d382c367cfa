-- Wait and transfer time of each rank in each collective, with bandwidth and the rank that arrived last.
--
-- A rank waits from its own start to the start of the last rank. The transfer runs from the last start to the first
-- end, so the bandwidth excludes waiting. A rank that ended before the last rank started has waited for its whole
-- duration (ended_before_last_start). Times are on the clock shared by all ranks; with correct_clocks := false, they
-- are the recorded times plus the base time of each trace. All ranks leave a collective together, so end_spread_ns
-- (first end to last end) bounds the error of a wait. Two kinds of collectives are excluded by default because they
-- cannot be judged: collectives not found on all ranks, and the first collective of a rank in the capture (is_startup).
-- The collective_match analysis counts both kinds, and shows how collectives were matched.
--
-- Title: Who waits for whom in collectives
-- Shown: rank, step, collective, dur_ns, wait_ns, transfer_ns, last_rank, bytes, busbw_gbps, pg_name
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens nccl_implicit_sync
-- Needs: GPU activity of two ranks that communicate
-- Report: first 2
CREATE OR REPLACE MACRO collective_waits_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether to correct clock offsets that the ends of collectives reveal.
    correct_clocks BOOLEAN := true,
    -- Whether to include collectives that cannot be judged because they are missing on some ranks or are the first in a
    -- capture.
    include_unsure BOOLEAN := false,
    -- Bandwidth of a device's links in one direction [GB/s]; NULL: taken from the device model, and only for groups
    -- within a host.
    link_gbps DOUBLE := NULL
) AS TABLE
-- Columns:
--   run                      VARCHAR         Run name.
--   collective_id            BIGINT          Id of the collective, the same on all its ranks.
--   rank                     INTEGER         Rank of the process.
--   step                     BIGINT          Profiler step; NULL outside steps.
--   collective               VARCHAR         Kind of collective: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send, recv, …
--   pg_name                  VARCHAR         Process group name.
--   pg_ranks                 VARCHAR         Ranks of the group as JSON.
--   group_size               BIGINT [1]      Number of ranks in the group.
--   bytes                    BIGINT [bytes]  Message size as defined by nccl-tests.
--   event_id                 BIGINT          event_id of the kernel.
--   start_ns                 BIGINT [ns]     Start time.
--   end_ns                   BIGINT [ns]     End time.
--   dur_ns                   BIGINT [ns]     Duration.
--   wait_ns                  BIGINT [ns]     Time until the last rank started; NULL without a match.
--   transfer_ns              BIGINT [ns]     Time from the last start to the first end; NULL without a match.
--   end_spread_ns            BIGINT [ns]     Time from the first to the last end.
--   is_last                  BOOLEAN         Whether the rank started last.
--   last_rank                INTEGER         Rank that started last.
--   algbw_gbps               DOUBLE [GB/s]   Algorithm bandwidth: bytes / transfer_ns; NULL if either is unknown or 0.
--   busbw_gbps               DOUBLE [GB/s]   Bus bandwidth: algbw_gbps times the nccl-tests factor of the collective; the load on the links.
--   link_peak_pct            DOUBLE [%]      busbw_gbps as a share of the peak bandwidth of the device's links; NULL if the peak is unknown.
--   spans_hosts              BOOLEAN         Whether the group spans several hosts; NULL if hosts are unknown.
--   is_complete              BOOLEAN         Whether the collective was found on all ranks whose traces contain the group.
--   is_startup               BOOLEAN         Whether this is the first collective of a rank in the capture.
--   ended_before_last_start  BOOLEAN         Whether a rank ended before the last rank started.
--   end_times_match          BOOLEAN         Whether the end times are as close together as usual in the group.
--   match_method             VARCHAR         How the collective was matched: seq (sequence number), ordinal, time, stream or none.
WITH
    -- Filter requested ranks at the end: they may wait for ranks that were not requested.
    parts AS (
        SELECT
            c.*,
            CASE WHEN correct_clocks THEN c.start_ns ELSE c.ts END AS start,
            CASE WHEN correct_clocks THEN c.end_ns ELSE c.ts + c.dur END AS finish,
            lib.message_bytes(c.collective, c.elem_type, c.in_elems, c.out_elems) AS size,
            coalesce(c.group_size, c.rank_count) AS n
        FROM matched_collectives AS c
        WHERE lib.is_requested(runs, c.run) AND (include_unsure OR (c.is_complete AND NOT c.is_startup))
    ),
    hosts AS (
        SELECT k.run, k.rank, k.host_name FROM ranks AS k
    ),
    instances AS (
        SELECT
            p.run, p.collective_id,
            count(*) AS found,
            max(p.start) AS last_start,
            min(p.finish) AS first_finish,
            max(p.finish) - min(p.finish) AS end_spread,
            arg_max(p.rank, (p.start, -p.rank)) AS last_rank,
            CASE WHEN count(h.host_name) = count(*) THEN count(DISTINCT h.host_name) > 1 END AS spans_hosts
        FROM parts AS p
        JOIN hosts AS h ON h.run = p.run AND h.rank = p.rank
        GROUP BY p.run, p.collective_id
    ),
    models AS (
        SELECT d.run, d.rank, d.device, lib.link_peak(d.name) AS peak FROM devices AS d
    ),
    measured AS (
        SELECT
            p.*, i.last_rank, i.end_spread, i.spans_hosts, i.found,
            CASE WHEN i.found > 1 THEN least(i.last_start - p.start, p.dur) END AS waited,
            CASE WHEN i.found > 1 THEN greatest(0, i.first_finish - i.last_start) END AS transferred,
            i.first_finish < i.last_start AS has_left,
            coalesce(link_gbps, CASE WHEN NOT coalesce(i.spans_hosts, false) THEN m.peak END) AS peak
        FROM parts AS p
        JOIN instances AS i ON i.run = p.run AND i.collective_id = p.collective_id
        LEFT JOIN models AS m ON m.run = p.run AND m.rank = p.rank AND m.device = p.device
        WHERE
            lib.is_requested(ranks, p.rank)
            AND lib.is_requested(steps, p.step)
            AND (include_last_profiler_step OR NOT p.in_last_step)
    )
SELECT
    m.run,
    m.collective_id,
    m.rank,
    m.step,
    m.collective,
    m.pg_name,
    coalesce(m.member_ranks, m.pg_ranks) AS pg_ranks,
    m.n AS group_size,
    m.size AS bytes,
    m.event_id,
    m.start AS start_ns,
    m.finish AS end_ns,
    m.dur AS dur_ns,
    m.waited AS wait_ns,
    m.transferred AS transfer_ns,
    CASE WHEN m.found > 1 THEN m.end_spread END AS end_spread_ns,
    m.found > 1 AND m.rank = m.last_rank AS is_last,
    CASE WHEN m.found > 1 THEN m.last_rank END AS last_rank,
    m.size / nullif(m.transferred, 0) AS algbw_gbps,
    m.size * lib.busbw_factor(m.collective, m.n) / nullif(m.transferred, 0) AS busbw_gbps,
    100 * m.size * lib.busbw_factor(m.collective, m.n) / nullif(m.transferred, 0) / m.peak AS link_peak_pct,
    m.spans_hosts,
    m.is_complete,
    m.is_startup,
    m.has_left AS ended_before_last_start,
    m.end_times_match,
    m.match_method
FROM measured AS m
ORDER BY m.run, m.collective_id, m.rank
