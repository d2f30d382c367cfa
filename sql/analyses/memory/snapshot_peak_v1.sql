-- Memory in use at the last out-of-memory error and at the peak, by category and stack, largest first.
--
-- Blocks that were allocated before the history begins have a stack only if the snapshot still contains them. The
-- rules of snapshot_categories assign stacks to categories; stacks that match no rule have the category unknown.
--
-- Title: What was in use at the peak and when memory ran out
-- Shown: rank, moment, bytes, share_pct, category, category_pct, frame, failed_bytes, block_count
-- Also: memory snapshot, oom, out of memory
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a snapshot has no steps
-- Reference: torch.cuda._memory_viz (Active Memory Timeline), facebookresearch/mosaic get_memory_usage_peak
-- Needs: memory snapshots with their history (torch.cuda.memory._record_memory_history)
-- Report: first 5; table; at most 16 ranks; if snapshot_blocks or snapshot_events or snapshot_segments
CREATE OR REPLACE MACRO snapshot_peak_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Number of most recent out-of-memory errors to include per device.
    last_ooms BIGINT := 1,
    -- Moment to show: peak, oom or end; NULL shows the peak and each out-of-memory error.
    only_moment VARCHAR := NULL
) AS TABLE
-- Columns:
--   run                VARCHAR         Run name.
--   rank               INTEGER         Rank of the process.
--   device             BIGINT          Device number.
--   moment             VARCHAR         peak, oom or end.
--   moment_id          BIGINT          event_id at this moment, in snapshot_events; NULL for the beginning of the history and for its end.
--   moment_ns          BIGINT [ns]     Unix time of the moment.
--   category           VARCHAR         parameters, gradients, activations, optimizer, sharding, communication or unknown.
--   category_pct       DOUBLE [%]      Share of total_bytes in blocks of the category.
--   is_recorded        BOOLEAN         Whether the allocation is in the history.
--   block_count        BIGINT [count]  Number of blocks with this stack.
--   bytes              BIGINT [bytes]  Total size of these blocks.
--   share_pct          DOUBLE [%]      bytes as a share of total_bytes.
--   total_bytes        BIGINT [bytes]  Total memory in use at this moment.
--   frame              VARCHAR         Line of the user's program that allocated these blocks; NULL if unknown.
--   folded_stack       VARCHAR         Stack of the allocation, starting with the outermost frame; NULL if unknown.
--   failed_bytes       BIGINT [bytes]  Size of the failed request; NULL for other moments.
--   device_free_bytes  BIGINT [bytes]  Free memory of the device at the out-of-memory error; NULL for other moments.
WITH
    summed AS (
        SELECT
            l.run, l.rank, l.device, l.moment, l.moment_id, l.moment_ns, l.requested_bytes, l.device_free_bytes, l.is_recorded,
            coalesce(t.category, 'unknown') AS category, t.frame, t.folded_stack, count(*) AS block_count, sum(l.bytes)::BIGINT AS bytes
        FROM lib.snapshot_live(runs, ranks, last_ooms) AS l
        LEFT JOIN lib.snapshot_stack_texts(runs, ranks) AS t ON t.run = l.run AND t.rank = l.rank AND t.stack_id = l.stack_id
        WHERE (only_moment IS NULL AND l.moment <> 'end') OR l.moment = only_moment
        GROUP BY ALL
    ),
    with_total AS (
        SELECT s.*, (sum(s.bytes) OVER _moment)::BIGINT AS total, sum(s.bytes) OVER _category AS category_total
        FROM summed AS s
        WINDOW
            _moment AS (PARTITION BY s.run, s.rank, s.device, s.moment, s.moment_id),
            _category AS (PARTITION BY s.run, s.rank, s.device, s.moment, s.moment_id, s.category)
    )
SELECT
    w.run,
    w.rank,
    w.device,
    w.moment,
    w.moment_id,
    w.moment_ns,
    w.category,
    100.0 * w.category_total / nullif(w.total, 0) AS category_pct,
    w.is_recorded,
    w.block_count,
    w.bytes,
    100.0 * w.bytes / nullif(w.total, 0) AS share_pct,
    w.total AS total_bytes,
    w.frame,
    w.folded_stack,
    w.requested_bytes AS failed_bytes,
    w.device_free_bytes
FROM with_total AS w
ORDER BY w.run, w.rank, w.device, w.moment <> 'oom', w.moment DESC, w.moment_id DESC, w.bytes DESC, w.category, w.folded_stack, w.frame, w.is_recorded, w.block_count
