-- Collectives that differ between the ranks of a group (desync): what differs, on which rank, and what to do.
--
-- Each row is for a rank whose collective, element type or number of elements differs from the majority, or on which a
-- collective is missing within the rank's capture. Rank-dependent code (an all-reduce under if rank == 0, an early
-- break, uneven batches) causes each later collective of a rank to be paired with the wrong collective of the other
-- ranks. is_first marks the row to inspect; later rows of the group may be consequences. Element counts are compared
-- only if the collective requires them to be equal. A trace without collective metadata has rows only for differing
-- operator names. Flight Recorder dumps are compared by the number of each collective in its group; see the hang
-- analysis for collectives that a rank never entered.
--
-- Title: Collectives that differ between ranks (desync)
-- Shown: rank, pg_name, differs_in, value, majority_value, majority_count, is_first, message
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a desync persists into the last step
-- Reference: PyTorch Flight Recorder analyzer, mismatches
-- Needs: ranks that disagree about a collective; no rows if all ranks agree
CREATE OR REPLACE MACRO collective_mismatches_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to show; NULL means every rank. The comparison uses all ranks.
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   found_in        VARCHAR         Source of the collectives: trace or dump.
--   collective_id   BIGINT          Id of the collective in the collectives analysis; for dumps, the number of the collective in its group.
--   rank            INTEGER         Rank that differs from the majority, or on which the collective is missing.
--   step            BIGINT          Profiler step (of the other ranks if the collective is missing on this rank); NULL outside steps.
--   pg_name         VARCHAR         Process group name.
--   pg_ranks        VARCHAR         Ranks of the group as JSON.
--   differs_in      VARCHAR         Differing properties: collective, elem_type, in_elems, out_elems (dumps: input_sizes, output_sizes), or missing.
--   value           VARCHAR         Collective that the rank runs; NULL if it is missing.
--   majority_value  VARCHAR         Collective that most ranks run.
--   majority_count  BIGINT [count]  Number of ranks in the majority.
--   is_first        BOOLEAN         Whether this is the first mismatch of its group; later mismatches may be consequences.
--   event_id        BIGINT          event_id of the rank's kernel; NULL if it has none.
--   op_id           BIGINT          event_id of the operator that launched the kernel.
--   start_ns        BIGINT [ns]     First start of the collective on the clock shared by all ranks; for dumps, the Unix time at which the first rank enqueued it.
--   message_code    VARCHAR         Code of the message in the table messages.
--   message         VARCHAR         Finding and recommended next step.
WITH
    found AS (
        SELECT
            'trace' AS found_in, m.run, m.channel_id::VARCHAR AS channel_key, m.collective_id, m.rank, m.step, m.event_id, m.op_id, m.collective, m.pg_name, m.pg_ranks, m.differs_in,
            m.value, m.majority_value, m.majority_count, m.start_ns,
            m.collective_id = first_value(m.collective_id) OVER (
                PARTITION BY m.run, m.channel_id, m.differs_in = 'missing' ORDER BY m.start_ns, m.collective_id
            ) AS is_first
        FROM lib.mismatched_collectives(runs) AS m
        UNION ALL
        SELECT
            'dump', d.run, d.group_key, d.collective_seq_id, d.rank, NULL, NULL, NULL, d.majority_value, d.pg_name, d.member_ranks, d.differs_in,
            d.value, d.majority_value, d.majority_count, d.start_ns,
            d.collective_seq_id = min(d.collective_seq_id) OVER (PARTITION BY d.run, d.group_key)
        FROM lib.dump_mismatches(runs) AS d
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
    f.found_in,
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
ORDER BY f.run, f.found_in DESC, f.channel_key, f.collective_id, f.rank
