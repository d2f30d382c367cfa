-- Arrival order of the ranks in one collective: how long each rank waited, and when the transfer began.
--
-- By default, the analysis shows the collective with the longest total wait over its ranks, one for each run. This
-- choice excludes messages between two ranks (see p2p_pairs), collectives missing on some ranks, and the first
-- collective of a rank in the capture. The choice also excludes collectives whose end times disagree, because their
-- waits are unreliable. Times are on the clock shared by all ranks.
--
-- Title: Arrival order of one collective
-- Shown: collective_id, collective, rank, late_ns, wait_ns, transfer_ns, position, is_last, step
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a collective belongs to one step
-- Reference: TraceLens nccl_implicit_sync, for one collective
-- Needs: GPU activity of two ranks that communicate
CREATE OR REPLACE MACRO collective_arrivals_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to show; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- collective_id of the collective to show; NULL means the collective with the longest total wait.
    chosen_id BIGINT := NULL
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   collective_id  BIGINT          Id of the collective in the collectives analysis.
--   collective     VARCHAR         Kind of collective: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send, recv, …
--   pg_desc        VARCHAR         Process group description.
--   step           BIGINT          Profiler step; NULL outside steps.
--   position       BIGINT [1]      Arrival order, from 1.
--   rank           INTEGER         Rank of the process.
--   host_name      VARCHAR         Host name; NULL if not recorded.
--   event_id       BIGINT          event_id of the kernel.
--   start_ns       BIGINT [ns]     Start time.
--   end_ns         BIGINT [ns]     End time.
--   late_ns        BIGINT [ns]     Delay after the arrival of the first rank.
--   wait_ns        BIGINT [ns]     Time until the last rank arrived, limited to the rank's own duration; NULL without a match.
--   transfer_ns    BIGINT [ns]     Time from the last arrival to the first end; NULL without a match.
--   is_last        BOOLEAN         Whether the rank arrived last.
--   bytes          BIGINT [bytes]  Message size as defined by nccl-tests.
WITH
    longest AS (
        SELECT m.run, m.collective_id
        FROM matched_collectives AS m
        WHERE
            lib.is_requested(runs, m.run)
            AND CASE WHEN chosen_id IS NULL THEN m.is_complete AND NOT m.is_startup AND m.end_times_match AND NOT m.is_p2p ELSE m.collective_id = chosen_id END
        GROUP BY m.run, m.collective_id
        QUALIFY row_number() OVER (PARTITION BY m.run ORDER BY sum(m.wait_ns) DESC NULLS LAST, m.collective_id) = 1
    ),
    arrived AS (
        SELECT
            m.*, k.host_name,
            row_number() OVER (PARTITION BY m.run ORDER BY m.start_ns, m.rank) AS position,
            m.start_ns - min(m.start_ns) OVER (PARTITION BY m.run) AS late_ns
        FROM matched_collectives AS m
        JOIN longest AS l ON l.run = m.run AND l.collective_id = m.collective_id
        JOIN ranks AS k ON k.run = m.run AND k.rank = m.rank
    )
SELECT
    a.run,
    a.collective_id,
    a.collective,
    a.pg_desc,
    a.step,
    a.position,
    a.rank,
    a.host_name,
    a.event_id,
    a.start_ns,
    a.end_ns,
    a.late_ns,
    a.wait_ns,
    a.transfer_ns,
    a.is_last,
    lib.message_bytes(a.collective, a.elem_type, a.in_elems, a.out_elems) AS bytes
FROM arrived AS a
WHERE lib.is_requested(ranks, a.rank)
ORDER BY a.run, a.position
