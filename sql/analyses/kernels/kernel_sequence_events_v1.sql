-- Every event that belongs to the most frequent kernel sequences of an operator.
--
-- The sequences are the top_k most frequent sequences of each rank, as in frequent_kernel_sequences. The events of a
-- sequence are its calls, all events inside the calls on the same thread, and the device operations that these events
-- launched. An event belongs to at most one call.
--
-- Title: Events of frequent kernel sequences
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_frequent_cuda_kernel_sequences, and the trace that it writes
-- Needs: operators, annotations or calls named like operator_name (aten:: by default), each of which launches min_pattern_len or more kernels and copies (3 by default)
CREATE OR REPLACE MACRO kernel_sequence_events_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Substring of the name of the operator, annotation or call.
    operator_name VARCHAR := 'aten::',
    -- Minimum sequence length [kernels, copies and memsets].
    min_pattern_len BIGINT := 3,
    -- Number of sequences per rank, the most frequent first; NULL means all.
    top_k BIGINT := 5
) AS TABLE
-- Columns:
--   run          VARCHAR  Run name.
--   rank         INTEGER  Rank of the process.
--   event_id     BIGINT   Position of the event in traceEvents.
--   sequence_id  BIGINT   Id of the sequence in frequent_kernel_sequences.
--   call_id      BIGINT   event_id of the call that the event belongs to.
WITH
    calls AS (
        SELECT s.*
        FROM lib.kernel_sequences(runs, ranks, steps, include_last_profiler_step, operator_name, min_pattern_len) AS s
    ),
    numbered AS (
        SELECT
            c.run,
            c.rank,
            c.pattern,
            c.name,
            c.kernel_count,
            row_number() OVER (
                PARTITION BY c.run, c.rank ORDER BY count(*) DESC, c.pattern, c.name, c.kernel_count
            ) AS sequence_id
        FROM calls AS c
        GROUP BY c.run, c.rank, c.pattern, c.name, c.kernel_count
    ),
    roots AS (
        SELECT c.event_id AS call_id, c.lane, c.ts, c.ts + c.dur AS end_ts, k.sequence_id
        FROM calls AS c
        JOIN numbered AS k
            ON k.run = c.run
            AND k.rank = c.rank
            AND k.pattern = c.pattern
            AND k.name = c.name
            AND k.kernel_count = c.kernel_count
        WHERE top_k IS NULL OR k.sequence_id <= top_k
    ),
    host AS (
        SELECT h.event_id, {'run': h.run, 'rank': h.rank, 'pid': h.pid, 'tid': h.tid} AS lane, h.ts, h.ts + h.dur AS end_ts
        FROM lib.scoped_host_events(runs, ranks, NULL, include_last_profiler_step) AS h
    ),
    inside AS (
        SELECT r.lane.run AS run, r.lane.rank AS rank, h.event_id, r.sequence_id, r.call_id
        FROM host AS h
        ASOF JOIN roots AS r ON r.lane = h.lane AND r.ts <= h.ts
        -- An event with the same start and end as the call encloses the call if it is earlier in the trace.
        WHERE h.end_ts <= r.end_ts AND (h.ts, r.end_ts - h.end_ts, h.event_id) >= (r.ts, 0, r.call_id)
    )
SELECT i.run, i.rank, i.event_id, i.sequence_id, i.call_id
FROM inside AS i
UNION ALL
SELECT i.run, i.rank, g.event_id, i.sequence_id, i.call_id
FROM lib.scoped_gpu_ops(runs, ranks, NULL, include_last_profiler_step) AS g
JOIN inside AS i ON i.run = g.run AND i.rank = g.rank AND i.event_id = g.launch_id
ORDER BY run, rank, event_id
