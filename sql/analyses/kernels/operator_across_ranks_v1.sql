-- Each occurrence of an operator or kernel, compared across ranks: slow on one rank, or on all.
--
-- The k-th occurrence in a step on one rank is compared with the k-th in the same step on the other ranks. Occurrences
-- outside steps, or launched before the capture began, are excluded. A rank is slow if its mean over all occurrences
-- is 3.5 or more standard deviations above the median of the ranks. An occurrence is slow on all ranks if its median
-- over the ranks is as far above the median of the occurrences. The standard deviation is estimated from the median
-- absolute deviation, and is at least 1 % of the median. Comparisons need at least three ranks or occurrences. A
-- collective lasts until its last rank arrives (collective_waits). Times are on the clock shared by all ranks.
--
-- Title: The same operator on all ranks
-- Shown: name, rank, dur_ns, median_dur_ns, rank_z, verdict, step, side
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight Marey view
-- Needs: GPU activity, or the name of an operator
-- Report: of several ranks
CREATE OR REPLACE MACRO operator_across_ranks_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to show; NULL means every rank. The comparison uses all ranks.
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Name of an operator, annotation, call or kernel, full or shortened; NULL means the kernels with the longest
    -- total time.
    op_name VARCHAR := NULL,
    -- Number of names to show per run, longest total time over all ranks first; NULL means every name.
    num_names BIGINT := 3,
    -- Number of occurrences to show per name, starting with the first; NULL means all.
    num_occurrences BIGINT := 20
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   side           VARCHAR         Side on which the operation runs: host or device.
--   name           VARCHAR         Name of the operator or kernel.
--   position       BIGINT [1]      Position among the shown occurrences of the name, from 1.
--   step           BIGINT          Profiler step; NULL outside steps.
--   occurrence     BIGINT [1]      Position among the rank's occurrences of the name in the step, from 1.
--   rank           INTEGER         Rank of the process.
--   event_id       BIGINT          Position of the event in traceEvents.
--   start_ns       BIGINT [ns]     Start on the clock shared by all ranks.
--   dur_ns         BIGINT [ns]     Duration.
--   rank_count     BIGINT [count]  Number of ranks with this occurrence.
--   median_dur_ns  DOUBLE [ns]     Median duration of the occurrence over all ranks that have it.
--   rank_mean_ns   DOUBLE [ns]     Mean duration of all occurrences on the rank.
--   rank_z         DOUBLE [1]      Distance of rank_mean_ns from the median of the ranks, in standard deviations; NULL for fewer than three ranks.
--   occurrence_z   DOUBLE [1]      Distance of median_dur_ns from the median of the occurrences, in standard deviations; NULL for fewer than three occurrences.
--   verdict        VARCHAR         slow rank, slow on all ranks or as usual; NULL if the occurrence is not slow on all ranks and ranks cannot be compared.
WITH
    candidates AS (
        SELECT 'device' AS side, g.run, g.rank, g.step, g.event_id, g.name, g.ts, g.dur
        FROM lib.launched_gpu_ops(runs, NULL, steps, include_last_profiler_step) AS g
        WHERE op_name IS NOT NULL OR g.kind = 'kernel'
        UNION ALL
        SELECT 'host', h.run, h.rank, h.step, h.event_id, lib.frame_name(h.name), h.ts, h.dur
        FROM lib.scoped_host_events(runs, NULL, steps, include_last_profiler_step) AS h
        WHERE op_name IS NOT NULL
    ),
    totals AS MATERIALIZED (
        SELECT c.run, c.side, c.name, sum(c.dur) AS total
        FROM candidates AS c
        GROUP BY c.run, c.side, c.name
    ),
    chosen AS MATERIALIZED (
        SELECT t.run, t.side, t.name
        FROM totals AS t
        JOIN lib.short_names('totals') AS n ON n.name = t.name
        WHERE op_name IS NULL OR op_name IN (t.name, n.short_name)
        QUALIFY num_names IS NULL OR row_number() OVER (PARTITION BY t.run ORDER BY t.total DESC, t.side, t.name) <= num_names
    ),
    stepped AS (
        SELECT DISTINCT p.run, p.rank FROM steps AS p WHERE lib.is_requested(runs, p.run)
    ),
    ops AS MATERIALIZED (
        SELECT
            c.run, c.side, c.name, c.step, c.rank, c.event_id, c.ts, c.dur,
            row_number() OVER (PARTITION BY c.run, c.side, c.name, c.rank, c.step ORDER BY c.ts, c.event_id) AS occurrence
        FROM candidates AS c
        JOIN chosen AS h ON h.run = c.run AND h.side = c.side AND h.name = c.name
        LEFT JOIN stepped AS p ON p.run = c.run AND p.rank = c.rank
        WHERE c.step IS NOT NULL OR p.run IS NULL
    ),
    means AS (
        SELECT o.run, o.side, o.name, o.rank, sum(o.dur) / count(*) AS mean_dur
        FROM ops AS o
        GROUP BY o.run, o.side, o.name, o.rank
    ),
    centered_ranks AS (
        SELECT m.*, median(m.mean_dur) OVER peers AS middle, count(*) OVER peers AS peer_count
        FROM means AS m
        WINDOW peers AS (PARTITION BY m.run, m.side, m.name)
    ),
    scored_ranks AS (
        SELECT
            c.run, c.side, c.name, c.rank, c.mean_dur,
            CASE WHEN c.peer_count >= 3 THEN
                (c.mean_dur - c.middle) / nullif(greatest(1.4826 * median(abs(c.mean_dur - c.middle)) OVER peers, 0.01 * c.middle), 0)
            END AS rank_distance
        FROM centered_ranks AS c
        WINDOW peers AS (PARTITION BY c.run, c.side, c.name)
    ),
    occurrences AS (
        SELECT
            o.run, o.side, o.name, o.step, o.occurrence, count(*) AS rank_count, median(o.dur) AS middle_dur,
            row_number() OVER (PARTITION BY o.run, o.side, o.name ORDER BY o.step NULLS LAST, o.occurrence) AS position
        FROM ops AS o
        GROUP BY o.run, o.side, o.name, o.step, o.occurrence
    ),
    centered_occurrences AS (
        SELECT o.*, median(o.middle_dur) OVER peers AS middle, count(*) OVER peers AS peer_count
        FROM occurrences AS o
        WINDOW peers AS (PARTITION BY o.run, o.side, o.name)
    ),
    scored_occurrences AS (
        SELECT
            c.run, c.side, c.name, c.step, c.occurrence, c.rank_count, c.middle_dur, c.position,
            CASE WHEN c.peer_count >= 3 THEN
                (c.middle_dur - c.middle) / nullif(greatest(1.4826 * median(abs(c.middle_dur - c.middle)) OVER peers, 0.01 * c.middle), 0)
            END AS occurrence_distance
        FROM centered_occurrences AS c
        WINDOW peers AS (PARTITION BY c.run, c.side, c.name)
    )
SELECT
    o.run,
    o.side,
    o.name,
    s.position,
    o.step,
    o.occurrence,
    o.rank,
    o.event_id,
    o.ts - k.ahead_ns - round(k.drift * (o.ts - k.mid_ts))::BIGINT AS start_ns,
    o.dur AS dur_ns,
    s.rank_count,
    s.middle_dur AS median_dur_ns,
    r.mean_dur AS rank_mean_ns,
    r.rank_distance AS rank_z,
    s.occurrence_distance AS occurrence_z,
    CASE
        WHEN r.rank_distance >= 3.5 THEN 'slow rank'
        WHEN s.occurrence_distance >= 3.5 THEN 'slow on all ranks'
        WHEN r.rank_distance IS NOT NULL THEN 'as usual'
    END AS verdict
FROM ops AS o
JOIN scored_occurrences AS s
    ON s.run = o.run AND s.side = o.side AND s.name = o.name AND s.step IS NOT DISTINCT FROM o.step AND s.occurrence = o.occurrence
JOIN scored_ranks AS r ON r.run = o.run AND r.side = o.side AND r.name = o.name AND r.rank = o.rank
JOIN lib.clock_offsets(runs) AS k ON k.run = o.run AND k.rank = o.rank AND k.span = lib.span_of(o.event_id)
WHERE (num_occurrences IS NULL OR s.position <= num_occurrences) AND lib.is_requested(ranks, o.rank)
ORDER BY o.run, o.side, o.name, s.position, o.rank
