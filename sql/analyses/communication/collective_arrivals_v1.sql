-- One collective: in which order its ranks came, how long each waited, and when the data then moved.
--
-- Of each run the collective in which its ranks waited longest, summed over them, or the one that is asked for.
-- Not chosen by itself: messages between two ranks (p2p_pairs), what some ranks lack, the first collective of a
-- rank in the capture, and where ends do not agree, so that waits are none. Times are in the time that all
-- ranks share.
--
-- Title: Arrival order of one collective
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; one collective is of one step
-- Reference: TraceLens nccl_implicit_sync, of one collective
-- Needs: GPU activity of two ranks that communicate
CREATE OR REPLACE MACRO collective_arrivals_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to show; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- collective_id of the collective; NULL means the one with the longest waits.
    chosen_id BIGINT := NULL
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   collective_id  BIGINT          Number of the collective, as in collectives.
--   collective     VARCHAR         all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send, recv, …
--   pg_desc        VARCHAR         Process group description.
--   step           BIGINT          Profiler step; NULL outside steps.
--   position       BIGINT [1]      1 for the rank that came first.
--   rank           INTEGER         Rank of the process.
--   host_name      VARCHAR         Host name; NULL if not recorded.
--   event_id       BIGINT          event_id of the kernel.
--   start_ns       BIGINT [ns]     Start time.
--   end_ns         BIGINT [ns]     End time.
--   late_ns        BIGINT [ns]     How much later than the first rank it came.
--   wait_ns        BIGINT [ns]     Until the last rank came, at most as long as it was there; NULL without a match.
--   transfer_ns    BIGINT [ns]     From then to the first end; NULL without a match.
--   is_last        BOOLEAN         The rank that came last.
--   bytes          BIGINT [bytes]  Size of the message as nccl-tests counts it.
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
