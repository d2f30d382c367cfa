-- State of each rank at the last collectives of each stuck process group, as a grid.
--
-- Each row is one cell of the grid: one rank and one collective of a group that the hang analysis reports.
--
-- Title: Collectives of stuck groups, rank by rank
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a group is judged as a whole
-- Reference: none
-- Report: first 6; chart; if fr_entries
-- Needs: Flight Recorder dumps of a job with an operation that did not finish
CREATE OR REPLACE MACRO hang_grid_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to show; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Number of collectives per group to show, up to the stuck collective.
    last_count BIGINT := 12
) AS TABLE
-- Columns:
--   run                VARCHAR  Run name.
--   channel            VARCHAR  Description and name of the group.
--   rank               INTEGER  Rank of the group.
--   collective_seq_id  BIGINT   Number of the collective in the group.
--   state              VARCHAR  finished, waiting, different, not started, missing, ended (without the missing ranks), no dump, or unknown (no longer in the dump).
--   is_stuck           BOOLEAN  Whether the group is stuck at this collective.
--   is_culprit         BOOLEAN  Whether the group is stuck at this collective because of this rank, as the analysis hang states.
--   op                 VARCHAR  Operation that the rank entered; NULL if it entered none.
WITH
    stuck AS MATERIALIZED (
        SELECT c.*, coalesce(list_contains(h.culprit_list, c.rank), false) AS is_culprit
        FROM lib.stuck_collectives(runs) AS c
        JOIN lib.hang_verdicts(runs) AS h ON h.run = c.run AND h.item_key = c.item_key
    ),
    entered AS (
        SELECT o.run, o.group_key, o.rank, o.collective_seq_id, bool_and(o.is_ended) AS is_ended, arg_min(o.op, o.record_id) AS op
        FROM lib.dump_operations(runs) AS o
        JOIN (SELECT DISTINCT s.run, s.item_key, s.collective_seq_id FROM stuck AS s) AS s ON s.run = o.run AND s.item_key = o.group_key
        WHERE NOT o.is_p2p AND o.collective_seq_id BETWEEN s.collective_seq_id - last_count + 1 AND s.collective_seq_id
        GROUP BY o.run, o.group_key, o.rank, o.collective_seq_id
    ),
    cells AS (
        SELECT s.*, unnest(range(greatest(s.collective_seq_id - last_count + 1, 1), s.collective_seq_id + 1)) AS cell_id
        FROM stuck AS s
        WHERE lib.is_requested(ranks, s.rank)
    )
SELECT
    c.run,
    c.channel,
    c.rank,
    c.cell_id AS collective_seq_id,
    CASE
        WHEN c.role = 'undumped' THEN 'no dump'
        WHEN c.cell_id = c.collective_seq_id AND c.role = 'scheduled' THEN 'not started'
        WHEN c.cell_id = c.collective_seq_id THEN c.role
        WHEN e.rank IS NULL THEN 'unknown'
        WHEN x.rank IS NOT NULL THEN 'different'
        WHEN e.is_ended THEN 'finished'
        ELSE 'waiting'
    END AS state,
    c.cell_id = c.collective_seq_id AS is_stuck,
    c.is_culprit AND c.cell_id = c.collective_seq_id AS is_culprit,
    e.op
FROM cells AS c
LEFT JOIN entered AS e ON e.run = c.run AND e.group_key = c.item_key AND e.rank = c.rank AND e.collective_seq_id = c.cell_id
LEFT JOIN lib.dump_mismatches(runs) AS x
    ON x.run = c.run AND x.group_key = c.item_key AND x.rank = c.rank AND x.collective_seq_id = c.cell_id
ORDER BY c.run, c.item_key, c.rank, c.cell_id
