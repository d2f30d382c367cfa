-- The last operations of each rank before the Flight Recorder dumps, on one timeline.
--
-- Operations of all ranks and groups are ordered by enqueue time, as measured by each host's clock. The hang analysis
-- reports the operations that a rank entered but did not finish.
--
-- Title: Last operations of each rank
-- Shown: rank, channel, op, frame, state, collective_seq_id, created_at
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a dump has no steps
-- Reference: none
-- Needs: Flight Recorder dumps
CREATE OR REPLACE MACRO collective_history_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Number of most recent operations to show per rank; NULL shows all.
    last_count BIGINT := 20
) AS TABLE
-- Columns:
--   run                VARCHAR      Run name.
--   rank               INTEGER      Rank that wrote the dump.
--   record_id          BIGINT       Number of the operation in its process.
--   channel            VARCHAR      Description and name of the group; for a send or receive, followed by the pair of ranks, within the group if its ranks are not known.
--   pg_name            VARCHAR      Process group name.
--   collective_seq_id  BIGINT       Number of the collective in the group; NULL for sends and receives.
--   op                 VARCHAR      Operation with shape and type.
--   is_p2p             BOOLEAN      Whether the operation is a send or a receive.
--   state              VARCHAR      State in the dump: scheduled, started or completed; gloo and custom backends leave it at scheduled.
--   is_ended           BOOLEAN      Whether the operation ended, successfully or not.
--   created_ns         BIGINT [ns]  Unix time when the host enqueued the operation.
--   created_at         VARCHAR      created_ns as a string, UTC.
--   completed_ns       BIGINT [ns]  Unix time when the recorder found the operation completed; NULL for gloo.
--   frame              VARCHAR      Line of the user's program that called the operation; NULL without stacks.
WITH
    operations AS (
        SELECT o.*
        FROM lib.dump_operations(runs) AS o
        WHERE lib.is_requested(ranks, o.rank)
        QUALIFY last_count IS NULL OR row_number() OVER (PARTITION BY o.run, o.rank ORDER BY o.record_id DESC) <= last_count
    )
SELECT
    o.run,
    o.rank,
    o.record_id,
    CASE WHEN o.src_rank IS NULL THEN o.channel ELSE concat(o.channel, ' ', o.src_rank, '->', o.dst_rank) END AS channel,
    o.pg_name,
    CASE WHEN NOT o.is_p2p THEN o.collective_seq_id END AS collective_seq_id,
    o.op_text AS op,
    o.is_p2p,
    o.state,
    o.is_ended,
    o.created_ns,
    strftime(make_timestamp(o.created_ns // 1000), '%Y-%m-%d %H:%M:%S.%f') AS created_at,
    o.completed_ns,
    s.frame_text AS frame
FROM operations AS o
LEFT JOIN lib.dump_stacks(runs) AS s ON s.run = o.run AND s.rank = o.rank AND s.stack_id = o.stack_id
ORDER BY o.run, o.created_ns, o.rank, o.record_id
