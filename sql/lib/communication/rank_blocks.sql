-- Own work of each rank in each block of the common window, and the set of its peers.
--
-- Copies that run during a transfer are own work, because computation may wait for them rather than for the transfer.
--
-- A block has the same duration on all ranks and consists of own work, exposed transfer and exposed wait. All waiting
-- ranks wait equally long, whichever rank arrives last in their groups; the straggler has more own work. Peers are
-- the ranks of the same role and pipeline stage, or, if the stage is unknown, the ranks of the same role that
-- collectives connect.
--
-- A first or last block shorter than half of the median length is excluded. So are blocks of a rank in which 2 % or more of
-- the time is unrecorded, because the work in that time is unknown.
CREATE OR REPLACE MACRO lib.rank_blocks(
    runs,
    -- Name of a relation with the columns of lib.pipeline_ranks.
    pipeline_ranks
) AS TABLE
-- Columns:
--   run            VARCHAR      Run name.
--   set_id         VARCHAR      Set of peers: the role (if stated), followed by the stage or, if unknown, by the lowest rank to which collectives connect the rank.
--   item_id        INTEGER      Rank of the process.
--   stage          INTEGER      Pipeline stage, from 0; NULL without pipeline parallelism.
--   span           INTEGER      Recording of the rank.
--   block          BIGINT       Number of the block.
--   ts             BIGINT [ns]  Start of the block on the rank's clock.
--   block_ns       BIGINT [ns]  Length of the block.
--   own_ns         BIGINT [ns]  Own work: compute, copies that compute does not overlap, and idle time, without exposed communication.
--   compute_ns     BIGINT [ns]  Time with a computation kernel running.
--   memory_ns      BIGINT [ns]  Time in copies and memsets, not overlapped by compute or a wait.
--   idle_ns        BIGINT [ns]  Time during which nothing runs.
--   transfer_ns    BIGINT [ns]  Exposed transfer without copies, and exposed communication whose waits are unknown.
--   wait_ns        BIGINT [ns]  Exposed wait.
WITH RECURSIVE
    _edges AS (
        SELECT b.run, b.span, b.block, b.block_ns, b.ends, b.block_ns >= lib.judging().whole_block_share * median(b.block_ns) OVER (PARTITION BY b.run) AS is_whole
        FROM (
            SELECT
                p.run, p.span, p.block, min(p.step_ns) AS block_ns,
                p.block IN (min(p.block) OVER (PARTITION BY p.run, p.span), max(p.block) OVER (PARTITION BY p.run, p.span)) AS ends
            FROM step_parts AS p
            WHERE p.is_common AND lib.is_requested(runs, p.run)
            GROUP BY p.run, p.span, p.block
        ) AS b
    ),
    _stages AS (
        SELECT s.run, s.rank, any_value(s.stage) AS stage FROM query_table(pipeline_ranks) AS s GROUP BY s.run, s.rank
    ),
    _groups AS MATERIALIZED (
        SELECT m.run, m.rank, m.channel_id, m.is_p2p
        FROM matched_collectives AS m
        WHERE m.found_count > 1 AND lib.is_requested(runs, m.run)
        GROUP BY m.run, m.rank, m.channel_id, m.is_p2p
        -- Sends and receives connect ranks only if no collective does.
        QUALIFY NOT m.is_p2p OR bool_and(m.is_p2p) OVER (PARTITION BY m.run)
    ),
    -- The lowest rank to which groups connect each rank.
    _connected(run, rank, root) USING KEY (run, rank) AS (
        SELECT g.run, g.rank, min(g.rank) FROM _groups AS g GROUP BY g.run, g.rank
        UNION
        (
            SELECT g.run, g.rank, min(c.root)
            FROM (
                SELECT h.run, h.channel_id, min(l.root) AS root
                FROM _connected AS l
                JOIN _groups AS h ON h.run = l.run AND h.rank = l.rank
                GROUP BY h.run, h.channel_id
            ) AS c
            JOIN _groups AS g ON g.run = c.run AND g.channel_id = c.channel_id
            JOIN recurring._connected AS v ON v.run = g.run AND v.rank = g.rank
            WHERE c.root < v.root
            GROUP BY g.run, g.rank
        )
    )
SELECT
    p.run,
    -- Ranks of different roles do different work.
    concat_ws(' ', k.role, coalesce('stage ' || s.stage, 'group ' || c.root, 'group')) AS set_id,
    p.rank AS item_id,
    s.stage,
    p.span,
    p.block,
    p.ts,
    p.step_ns AS block_ns,
    p.step_ns - p.exposed_transfer_ns - p.exposed_unmatched_ns - p.exposed_wait_ns + p.copied_transfer_ns AS own_ns,
    p.compute_ns,
    p.exposed_memory_ns + p.copied_transfer_ns AS memory_ns,
    p.idle_before_ns + p.idle_between_ns + p.idle_after_ns AS idle_ns,
    p.exposed_transfer_ns + p.exposed_unmatched_ns - p.copied_transfer_ns AS transfer_ns,
    p.exposed_wait_ns AS wait_ns
FROM step_parts AS p
JOIN _edges AS e ON e.run = p.run AND e.span = p.span AND e.block = p.block
LEFT JOIN _stages AS s ON s.run = p.run AND s.rank = p.rank
LEFT JOIN ranks AS k ON k.run = p.run AND k.rank = p.rank
LEFT JOIN _connected AS c ON c.run = p.run AND c.rank = p.rank
WHERE
    p.is_common
    AND (e.is_whole OR NOT e.ends)
    AND p.unrecorded_before_ns + p.unrecorded_lost_ns + p.unrecorded_after_ns < lib.judging().unrecorded_share * p.step_ns
