-- Ranks that entered collectives late before the Flight Recorder dumps: one row per group and rank.
--
-- A rank's lateness in a collective is how much later than the first rank it enqueued the collective. Lateness is
-- measured over the last collectives of the group that are in every dump of the group. Host clocks differ: if a rank is
-- late by nearly the same time in every collective, its clock may be wrong.
--
-- Title: Late ranks before the dumps
-- Shown: rank, collective_count, last_in_count, last_in_pct, mean_late_ns, max_late_ns, channel
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; all ranks are compared
-- Reference: none
-- Needs: Flight Recorder dumps of two ranks of a group
CREATE OR REPLACE MACRO dump_arrivals_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to show; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Number of collectives per group to compare, ending with the last collective that all ranks reached; NULL: all.
    last_count BIGINT := 100
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   channel           VARCHAR         Description and name of the group.
--   rank              INTEGER         Rank of the group.
--   pg_name           VARCHAR         Process group name.
--   collective_count  BIGINT [count]  Number of compared collectives.
--   last_in_count     BIGINT [count]  Number of compared collectives that the rank entered last.
--   last_in_pct       DOUBLE [%]      last_in_count as a share of collective_count.
--   mean_late_ns      BIGINT [ns]     Mean lateness.
--   median_late_ns    BIGINT [ns]     Median lateness.
--   max_late_ns       BIGINT [ns]     Largest lateness.
--   total_late_ns     BIGINT [ns]     Total lateness.
WITH
    reached AS (
        SELECT o.run, o.group_key, o.rank, max(o.collective_seq_id) AS last_id
        FROM lib.dump_operations(runs) AS o
        WHERE NOT o.is_p2p AND o.created_ns IS NOT NULL
        GROUP BY o.run, o.group_key, o.rank
    ),
    sizes AS MATERIALIZED (
        SELECT r.run, r.group_key, count(*) AS rank_count, min(r.last_id) AS last_id
        FROM reached AS r
        GROUP BY r.run, r.group_key
        HAVING count(*) > 1
    ),
    entered AS MATERIALIZED (
        SELECT o.run, o.group_key, any_value(o.channel) AS channel, any_value(o.pg_name) AS pg_name, o.rank, o.collective_seq_id, min(o.created_ns) AS created_ns
        FROM lib.dump_operations(runs) AS o
        JOIN sizes AS s ON s.run = o.run AND s.group_key = o.group_key
        WHERE
            NOT o.is_p2p AND o.created_ns IS NOT NULL AND o.collective_seq_id <= s.last_id
            AND (last_count IS NULL OR o.collective_seq_id > s.last_id - last_count)
        GROUP BY o.run, o.group_key, o.rank, o.collective_seq_id
    ),
    shared AS (
        SELECT e.run, e.group_key, e.collective_seq_id, min(e.created_ns) AS first_ns, arg_max(e.rank, (e.created_ns, e.rank)) AS last_rank
        FROM entered AS e
        JOIN sizes AS s ON s.run = e.run AND s.group_key = e.group_key
        GROUP BY e.run, e.group_key, e.collective_seq_id, s.rank_count
        HAVING count(*) = s.rank_count
    )
SELECT
    e.run,
    e.channel,
    e.rank,
    e.pg_name,
    count(*) AS collective_count,
    count_if(s.last_rank = e.rank)::BIGINT AS last_in_count,
    count_if(s.last_rank = e.rank) / count(*) * 100 AS last_in_pct,
    avg(e.created_ns - s.first_ns)::BIGINT AS mean_late_ns,
    median(e.created_ns - s.first_ns)::BIGINT AS median_late_ns,
    max(e.created_ns - s.first_ns) AS max_late_ns,
    sum(e.created_ns - s.first_ns)::BIGINT AS total_late_ns
FROM entered AS e
JOIN shared AS s ON s.run = e.run AND s.group_key = e.group_key AND s.collective_seq_id = e.collective_seq_id
WHERE lib.is_requested(ranks, e.rank)
GROUP BY e.run, e.group_key, e.channel, e.rank, e.pg_name
ORDER BY e.run, e.group_key, e.rank
