-- Computation kernels that wait for the same kernel on other ranks, although their name says nothing of communication.
--
-- Examples are fused kernels, and barriers of libraries that are unknown here. Ranks start such a kernel at different
-- times and end it together; without a wait, the ends would differ as much as the starts. In each step, the n-th calls
-- of all ranks that run the kernel belong together. A kernel is one that waits if at least three calls start further
-- apart than the shortest of them lasts, and in nine tenths of those calls, the ends differ by at most a twentieth of
-- the starts.
CREATE OR REPLACE MACRO lib.waiting_kernels(
    runs,
    -- Name of a relation with the columns of lib.clock_offsets.
    clocks
) AS TABLE
-- Columns:
--   run            VARCHAR      Run name.
--   rank           INTEGER      Rank of the process.
--   span           INTEGER      Recording of the rank.
--   event_id       BIGINT       event_id of the kernel.
--   ts             BIGINT [ns]  Start of the kernel.
--   meeting_id     BIGINT       Number of the call: ranks that wait for each other have the same.
--   last_start_ns  BIGINT [ns]  Start of the last rank, on the shared clock.
--   wait_ns        BIGINT [ns]  Time until the last rank starts; 0 for this rank.
WITH
    _kernels AS (
        SELECT g.run, g.rank, g.span, g.step, g.name, g.event_id, g.ts, g.dur
        FROM gpu_ops AS g
        WHERE g.class = 'computation' AND NOT g.is_suspect AND g.dur > 0 AND lib.is_requested(runs, g.run)
    ),
    -- A call that starts further apart than its shortest part lasts, and ends together, is twice as long on the first rank. This
    -- excludes most names before their calls are counted.
    _names AS MATERIALIZED (
        SELECT k.run, k.span, k.name, count(DISTINCT k.rank) AS rank_count
        FROM _kernels AS k
        GROUP BY k.run, k.span, k.name
        HAVING max(k.dur) >= 2 * min(k.dur) AND count(DISTINCT k.rank) > 1
    ),
    _calls AS (
        SELECT
            k.run, k.rank, k.span, k.step, k.name, k.event_id, k.ts, k.dur, n.rank_count,
            k.ts - c.ahead_ns - round(c.drift * (k.ts - c.mid_ts))::BIGINT AS start_ns,
            row_number() OVER (PARTITION BY k.run, k.span, k.step, k.name, k.rank ORDER BY k.ts, k.event_id) AS nth
        FROM _kernels AS k
        JOIN _names AS n ON n.run = k.run AND n.span = k.span AND n.name = k.name
        JOIN query_table(clocks) AS c ON c.run = k.run AND c.rank = k.rank AND c.span = k.span
    ),
    _meetings AS (
        SELECT
            c.run, c.span, c.step, c.name, c.nth, max(c.start_ns) AS last_start_ns,
            max(c.start_ns) <= min(c.start_ns + c.dur) AS is_met,
            max(c.start_ns) - min(c.start_ns) >= min(c.dur) AS is_apart,
            max(c.start_ns + c.dur) - min(c.start_ns + c.dur) <= lib.judging().barrier_end_share * (max(c.start_ns) - min(c.start_ns)) AS ends_match
        FROM _calls AS c
        GROUP BY c.run, c.span, c.step, c.name, c.nth
        HAVING count(*) = any_value(c.rank_count)
    ),
    _met AS MATERIALIZED (
        SELECT m.*, row_number() OVER (ORDER BY m.run, m.span, m.name, m.step, m.nth) AS meeting_id
        FROM _meetings AS m
        WINDOW of_name AS (PARTITION BY m.run, m.span, m.name)
        QUALIFY
            m.is_met AND count_if(m.is_apart) OVER of_name >= lib.judging().barrier_calls
            AND count_if(m.is_apart AND m.ends_match) OVER of_name >= lib.judging().barrier_call_share * count_if(m.is_apart) OVER of_name
    )
SELECT
    c.run, c.rank, c.span, c.event_id, c.ts, m.meeting_id, m.last_start_ns, m.last_start_ns - c.start_ns AS wait_ns
FROM _met AS m
JOIN _calls AS c ON c.run = m.run AND c.span = m.span AND c.name = m.name AND c.step IS NOT DISTINCT FROM m.step AND c.nth = m.nth
