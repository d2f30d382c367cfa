-- Matched collectives that differ between their ranks, and collectives that are missing on a rank.
--
-- All ranks must have the same kind of collective and element type, and the same number of elements if the kind
-- requires it. An all-to-all or gather of uneven parts has a different number on each rank; an all-gather is compared
-- by its output, and a reduce-scatter by its input. The value of most ranks is the reference; on a tie, the value of
-- the lowest rank. Values that are not recorded, or come only from a kernel's name, are not compared. Matches by
-- order are compared only if their end times agree and the group is known; otherwise the match itself may be wrong.
--
-- A collective is missing on a rank if other ranks of its channel ran it between two collectives of that rank.
-- Captures that start or end at different times do not explain such a gap.
CREATE OR REPLACE MACRO lib.mismatched_collectives(
    runs
) AS TABLE
-- Columns:
--   run             VARCHAR         Run name.
--   channel_id      BIGINT          Number of the channel.
--   collective_id   BIGINT          Id of the collective, the same on all its ranks.
--   rank            INTEGER         Rank that differs from the majority, or on which the collective is missing.
--   step            BIGINT          Profiler step (of the other ranks if the collective is missing on this rank).
--   event_id        BIGINT          event_id of the rank's kernel; NULL if the collective is missing on the rank.
--   op_id           BIGINT          event_id of the operator that launched the kernel.
--   collective      VARCHAR         Collective that the other ranks run.
--   pg_name         VARCHAR         Process group name.
--   pg_ranks        VARCHAR         Ranks of the group as JSON.
--   differs_in      VARCHAR         Differing properties: collective, elem_type, in_elems, out_elems, or missing.
--   value           VARCHAR         Collective that the rank runs; NULL if it is missing.
--   majority_value  VARCHAR         Collective that most ranks run.
--   majority_count  BIGINT [count]  Number of ranks in the majority.
--   start_ns        BIGINT [ns]     First start of the collective on the clock shared by all ranks.
WITH
    _parts AS (
        SELECT
            m.run, m.span, m.channel_id, m.collective_id, m.rank, m.step, m.event_id, m.op_id, m.collective, m.pg_name,
            coalesce(m.member_ranks, m.pg_ranks) AS group_ranks, m.elem_type, m.in_elems, m.out_elems,
            m.is_p2p, m.rank_count, m.found_count, m.match_method, m.start_ns, m.end_ns,
            m.found_count > 1 AND (m.match_method = 'seq' OR (m.match_method <> 'stream' AND m.end_times_match AND NOT m.ended_before_last_start)) AS is_compared,
            CASE WHEN NOT m.is_p2p AND m.detected_by <> 'name' THEN m.collective END AS kind,
            CASE WHEN m.collective IN ('all_reduce', 'reduce_scatter', 'broadcast', 'reduce', 'gather', 'send', 'recv') THEN m.in_elems END AS same_in,
            CASE WHEN m.collective IN ('all_reduce', 'all_gather', 'broadcast', 'scatter') THEN m.out_elems END AS same_out
        FROM matched_collectives AS m
        WHERE m.rank_count > 1 AND lib.is_requested(runs, m.run)
    ),
    _instances AS (
        SELECT
            -- If ranks disagree, take the value of the lowest rank.
            p.run, any_value(p.span) AS span, p.channel_id, p.collective_id, any_value(p.rank_count) AS rank_count, any_value(p.found_count) AS found_count,
            arg_min(p.collective, p.rank) AS collective, arg_min(p.pg_name, p.rank) AS pg_name, arg_min(p.group_ranks, p.rank) AS group_ranks,
            arg_min(p.step, p.rank) AS step, min(p.start_ns) AS start_ns, max(p.end_ns) AS end_ns,
            bool_or(p.is_compared)
            AND coalesce(
                min(p.kind) <> max(p.kind) OR min(p.elem_type) <> max(p.elem_type)
                OR min(p.same_in) <> max(p.same_in) OR min(p.same_out) <> max(p.same_out),
                false
            ) AS differs
        FROM _parts AS p
        GROUP BY p.run, p.channel_id, p.collective_id
    ),
    _worded AS (
        SELECT
            p.*, i.start_ns AS first_start,
            concat_ws(
                ' ', p.collective,
                CASE WHEN coalesce(p.same_in, p.same_out, p.in_elems) IS NOT NULL OR p.elem_type IS NOT NULL THEN 'of' END,
                CASE WHEN p.same_out <> p.same_in THEN p.same_in || ' to ' || p.same_out ELSE coalesce(p.same_in, p.same_out, p.in_elems)::VARCHAR END,
                p.elem_type
            ) AS words
        FROM _parts AS p
        JOIN _instances AS i ON i.run = p.run AND i.collective_id = p.collective_id
        WHERE i.differs
    ),
    _usual AS (
        SELECT
            w.run, w.collective_id, w.kind, w.elem_type, w.same_in, w.same_out,
            arg_min(w.collective, w.rank) AS collective, arg_min(w.words, w.rank) AS words, count(*) AS n
        FROM _worded AS w
        GROUP BY w.run, w.collective_id, w.kind, w.elem_type, w.same_in, w.same_out
        QUALIFY row_number() OVER (PARTITION BY w.run, w.collective_id ORDER BY count(*) DESC, min(w.rank)) = 1
    ),
    _differing AS (
        SELECT
            w.run, w.channel_id, w.collective_id, w.rank, w.step, w.event_id, w.op_id, u.collective, w.pg_name, w.group_ranks,
            concat_ws(
                ', ',
                CASE WHEN w.kind <> u.kind THEN 'collective' END,
                CASE WHEN w.elem_type <> u.elem_type THEN 'elem_type' END,
                CASE WHEN w.same_in <> u.same_in THEN 'in_elems' END,
                CASE WHEN w.same_out <> u.same_out THEN 'out_elems' END
            ) AS differs_in,
            w.words AS value, u.words AS majority_value, u.n AS majority_count, w.first_start AS start_ns
        FROM _worded AS w
        JOIN _usual AS u ON u.run = w.run AND u.collective_id = w.collective_id
    ),
    -- The capture of a rank certainly covers the time from the end of its first collective to the start of its last.
    _windows AS (
        SELECT m.run, m.rank, m.span, min(m.end_ns) AS from_ns, max(m.start_ns) AS until_ns
        FROM matched_collectives AS m
        WHERE lib.is_requested(runs, m.run)
        GROUP BY m.run, m.rank, m.span
    ),
    _members AS (
        SELECT p.run, p.span, p.channel_id, p.rank
        FROM _parts AS p
        GROUP BY p.run, p.span, p.channel_id, p.rank
        -- If the group was inferred from the stream alone, a missing collective proves nothing.
        HAVING NOT bool_or(p.match_method = 'stream')
    ),
    _missing AS (
        SELECT i.run, i.channel_id, i.collective_id, s.rank, i.step, i.collective, i.pg_name, i.group_ranks, i.found_count, i.start_ns
        FROM _instances AS i
        JOIN _members AS s ON s.run = i.run AND s.span = i.span AND s.channel_id = i.channel_id
        JOIN _windows AS w ON w.run = i.run AND w.rank = s.rank AND w.span = i.span AND w.from_ns < i.start_ns AND i.end_ns < w.until_ns
        LEFT JOIN _parts AS p ON p.run = i.run AND p.collective_id = i.collective_id AND p.rank = s.rank
        WHERE i.found_count < i.rank_count AND p.rank IS NULL
    )
SELECT
    d.run, d.channel_id, d.collective_id, d.rank, d.step, d.event_id, d.op_id, d.collective, d.pg_name, d.group_ranks AS pg_ranks,
    d.differs_in, d.value, d.majority_value, d.majority_count, d.start_ns
FROM _differing AS d
WHERE d.differs_in <> ''
UNION ALL
SELECT
    m.run, m.channel_id, m.collective_id, m.rank, m.step, NULL, NULL, m.collective, m.pg_name, m.group_ranks,
    'missing', NULL, m.collective, m.found_count, m.start_ns
FROM _missing AS m
