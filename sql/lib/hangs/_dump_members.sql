-- Ranks of each process group in Flight Recorder dumps, and whether each has a dump.
--
-- If no dump states the ranks, the default group has all ranks from 0 to the highest rank with a dump, and any other
-- group has the ranks whose dumps list it.
CREATE OR REPLACE MACRO lib._dump_members(
    runs
) AS TABLE
-- Columns:
--   run            VARCHAR   Run name.
--   group_key      VARCHAR   Name and ranks of the group, as in lib.dump_operations.
--   rank           INTEGER   Rank of the group.
--   has_dump       BOOLEAN   Whether there is a dump of the rank.
--   is_damaged     BOOLEAN   Whether the dump is damaged, so its last operations may be missing.
--   last_enqueued_id  BIGINT    Number of the last collective that the rank's host enqueued, as stated in the dump; NULL if not stated.
WITH
    _stated AS (
        SELECT
            g.run, g.rank, g.pg_desc, g.member_ranks, lib.dump_group_key(g.pg_name, g.member_ranks) AS group_key, g.last_enqueued_id
        FROM fr_groups AS g
        WHERE lib.is_requested(runs, g.run)
    ),
    _dumped AS (
        SELECT DISTINCT s.run, s.rank FROM ranks AS s WHERE lib.is_requested(runs, s.run) AND s.metadata LIKE '%"flight_recorder"%'
        UNION
        SELECT DISTINCT s.run, s.rank FROM _stated AS s
        UNION
        SELECT DISTINCT e.run, e.rank FROM fr_entries AS e WHERE lib.is_requested(runs, e.run)
    ),
    _members AS (
        SELECT DISTINCT m.run, m.group_key, unnest(from_json(m.member_ranks, '["INTEGER"]')) AS rank
        FROM (SELECT DISTINCT s.run, s.group_key, s.member_ranks FROM _stated AS s WHERE s.member_ranks IS NOT NULL) AS m
        UNION
        SELECT s.run, s.group_key, unnest(range(d.rank_count))::INTEGER
        FROM (SELECT DISTINCT s.run, s.group_key FROM _stated AS s WHERE s.member_ranks IS NULL AND s.pg_desc = 'default_pg') AS s
        JOIN (SELECT d.run, max(d.rank) + 1 AS rank_count FROM _dumped AS d GROUP BY d.run) AS d ON d.run = s.run
        UNION
        SELECT s.run, s.group_key, s.rank FROM _stated AS s WHERE s.member_ranks IS NULL AND s.pg_desc IS DISTINCT FROM 'default_pg'
    )
SELECT m.run, m.group_key, m.rank, d.rank IS NOT NULL AS has_dump, a.rank IS NOT NULL AS is_damaged, s.last_enqueued_id
FROM _members AS m
LEFT JOIN _dumped AS d ON d.run = m.run AND d.rank = m.rank
LEFT JOIN (SELECT DISTINCT a.run, a.rank FROM lib.damaged_artifacts(runs) AS a WHERE a.is_dump) AS a ON a.run = m.run AND a.rank = m.rank
LEFT JOIN _stated AS s ON s.run = m.run AND s.rank = m.rank AND s.group_key = m.group_key AND s.member_ranks IS NOT NULL
