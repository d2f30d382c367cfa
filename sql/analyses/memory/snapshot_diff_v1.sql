-- Difference between the memory of two snapshots by category and stack, largest change first.
--
-- The first run is the control, the second the test; the default is the two runs that end first. Multiple snapshots of
-- one rank in a folder are separate runs. Two stacks are the same if their folded forms are equal.
--
-- Title: Memory of two snapshots
-- Shown: rank, diff_bytes, diff_count, category, frame, control_run, control_bytes, test_run, test_bytes, device
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a snapshot has no steps
-- Reference: facebookresearch/mosaic get_memory_usage_diff
-- Needs: memory snapshots of two runs
-- Report: no
CREATE OR REPLACE MACRO snapshot_diff_v1(
    -- Control and test; NULL means the first two runs with a snapshot, in order of their last event.
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Moment to compare: end, peak or oom (the last out-of-memory error).
    at_moment VARCHAR := 'end'
) AS TABLE
-- Columns:
--   control_run    VARCHAR         Run of the control.
--   test_run       VARCHAR         Run of the test.
--   rank           INTEGER         Rank of the process.
--   device         BIGINT          Device number.
--   category       VARCHAR         parameters, gradients, activations, optimizer, sharding, communication or unknown.
--   diff_bytes     BIGINT [bytes]  Memory in use in the test minus memory in use in the control.
--   control_bytes  BIGINT [bytes]  Memory in use in the control.
--   test_bytes     BIGINT [bytes]  Memory in use in the test.
--   diff_count     BIGINT [count]  Number of blocks in the test minus number in the control.
--   frame          VARCHAR         Line of the user's program; NULL if unknown.
--   folded_stack   VARCHAR         Stack, starting with the outermost frame; NULL if unknown.
WITH
    named AS (
        SELECT s.run, row_number() OVER (ORDER BY max(s.time_ns) NULLS LAST, s.run) AS number
        FROM (
            SELECT x.run, NULL AS time_ns FROM snapshot_segments AS x
            UNION ALL
            SELECT y.run, max(y.time_ns) FROM snapshot_events AS y GROUP BY y.run
        ) AS s
        GROUP BY s.run
    ),
    sides AS (
        SELECT n.run, CASE WHEN runs IS NULL THEN n.number ELSE list_position(runs, n.run) END AS side
        FROM named AS n
        WHERE CASE WHEN runs IS NULL THEN n.number ELSE list_position(runs, n.run) END <= 2
    ),
    live AS (
        SELECT l.rank, l.device, s.side, coalesce(t.category, 'unknown') AS category, t.frame, t.folded_stack, l.bytes
        FROM lib.snapshot_live(runs, ranks, 1) AS l
        JOIN sides AS s ON s.run = l.run
        LEFT JOIN lib.snapshot_stack_texts(runs, ranks) AS t ON t.run = l.run AND t.rank = l.rank AND t.stack_id = l.stack_id
        WHERE l.moment = at_moment
    ),
    summed AS (
        SELECT
            l.rank, l.device, l.category, min(l.frame) AS frame, l.folded_stack,
            coalesce(sum(l.bytes) FILTER (l.side = 1), 0)::BIGINT AS control_sum,
            coalesce(sum(l.bytes) FILTER (l.side = 2), 0)::BIGINT AS test_sum,
            (count_if(l.side = 2) - count_if(l.side = 1))::BIGINT AS more
        FROM live AS l
        GROUP BY l.rank, l.device, l.category, l.folded_stack
    )
SELECT
    (SELECT s.run FROM sides AS s WHERE s.side = 1) AS control_run,
    (SELECT s.run FROM sides AS s WHERE s.side = 2) AS test_run,
    d.rank,
    d.device,
    d.category,
    d.test_sum - d.control_sum AS diff_bytes,
    d.control_sum AS control_bytes,
    d.test_sum AS test_bytes,
    d.more AS diff_count,
    d.frame,
    d.folded_stack
FROM summed AS d
WHERE EXISTS (SELECT 1 FROM sides AS s WHERE s.side = 2) AND (d.test_sum <> d.control_sum OR d.more <> 0)
ORDER BY d.rank, d.device, abs(d.test_sum - d.control_sum) DESC, d.folded_stack, d.category, d.more
