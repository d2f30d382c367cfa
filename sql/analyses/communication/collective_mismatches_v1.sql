-- Where ranks of a group do not run the same collectives (desync): what differs, on which rank, and what to do.
--
-- A row for each rank that runs another collective, other elements or as many others than most ranks that it is
-- matched with, and for each that lacks a collective while it was in its capture. Rank-dependent code (an
-- all-reduce under if rank == 0, an early break, uneven batches) pairs each later collective with a wrong one:
-- is_first marks the row to look at, the ones after it in the group may follow from it. Numbers of elements
-- are compared where the kind demands equal ones. A trace that records nothing of its collectives
-- has no rows but where names of operators differ.
--
-- Title: Collectives that differ between ranks (desync)
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; ranks that are out of step are so in the last step too
-- Reference: PyTorch Flight Recorder analyzer, mismatches
-- Needs: ranks that disagree about a collective; where all agree there is nothing to report
CREATE OR REPLACE MACRO collective_mismatches_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to show; NULL means every rank. The comparison uses all ranks.
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   collective_id   BIGINT          Number of the collective, as in collectives.
--   rank            INTEGER         Rank that differs from most, or lacks the collective.
--   step            BIGINT          Profiler step; of other ranks where it lacks the collective; NULL outside of steps.
--   pg_name         VARCHAR         Process group name.
--   pg_ranks        VARCHAR         Ranks of the group as JSON.
--   differs_in      VARCHAR         collective, elem_type, in_elems, out_elems, several of them, or missing.
--   value           VARCHAR         What the rank runs, in words; NULL where it lacks the collective.
--   majority_value  VARCHAR         What most ranks run.
--   majority_count  BIGINT [count]  Ranks that do.
--   is_first        BOOLEAN         The first one of its group, which the later ones may follow from.
--   event_id        BIGINT          event_id of the rank's kernel; NULL where it has none.
--   op_id           BIGINT          event_id of the operator that launched the kernel.
--   start_ns        BIGINT [ns]     First start of the collective, in the time that all ranks share.
--   message_code    VARCHAR         Code of the message in the table messages.
--   message         VARCHAR         What was found and what to do, in sentences.
WITH
    found AS (
        SELECT
            m.*,
            m.collective_id = first_value(m.collective_id) OVER (
                PARTITION BY m.run, m.channel_id, m.differs_in = 'missing' ORDER BY m.start_ns, m.collective_id
            ) AS is_first
        FROM lib.mismatched_collectives(runs) AS m
    ),
    described AS (
        SELECT
            f.*,
            CASE
                WHEN f.differs_in = 'missing' THEN lib.message(
                    'collective_mismatches.missing',
                    {
                        'rank': f.rank, 'collective': f.collective, 'majority_count': f.majority_count, 'group_ranks': coalesce(f.pg_ranks, f.pg_name), 'start_ns': f.start_ns
                    }
                )
                WHEN f.op_id IS NULL THEN lib.message(
                    'collective_mismatches.other',
                    {
                        'rank': f.rank, 'collective': f.value, 'majority_count': f.majority_count, 'group_ranks': coalesce(f.pg_ranks, f.pg_name),
                        'usual_collective': f.majority_value
                    }
                )
                ELSE lib.message(
                    'collective_mismatches.other_in_operator',
                    {
                        'rank': f.rank, 'collective': f.value, 'majority_count': f.majority_count, 'group_ranks': coalesce(f.pg_ranks, f.pg_name),
                        'usual_collective': f.majority_value, 'op_id': f.op_id
                    }
                )
            END AS message
        FROM found AS f
        WHERE lib.is_requested(ranks, f.rank)
    )
SELECT
    f.run,
    f.collective_id,
    f.rank,
    f.step,
    f.pg_name,
    f.pg_ranks,
    f.differs_in,
    f.value,
    f.majority_value,
    f.majority_count,
    f.is_first,
    f.event_id,
    f.op_id,
    f.start_ns,
    f.message.code AS message_code,
    lib.message_text(t.message, f.message.fields) AS message
FROM described AS f
LEFT JOIN messages AS t ON t.code = f.message.code
ORDER BY f.run, f.collective_id, f.rank
