-- Allocations of memory snapshots during the trace of the same rank, joined to the allocating operator and step.
--
-- Both files come from one process. PyTorch converts the times of snapshots, like those of traces, from the
-- processor's counter to Unix time (c10::ApproximateClockToUnixTimeConverter). The clocks are shared if the trace
-- starts at a Unix time and the snapshot has events within the trace. An allocation is then joined to the memory
-- event (profile_memory=True) that is nearest in time and has the same address and a fitting size. Without such an
-- event, it belongs to the innermost operator at that time, unless several threads run operators at that time.
--
-- Without a shared clock, the order of events in both files is compared: sequences of consecutive allocations with
-- the same addresses and fitting sizes are aligned, the longest first. A lost event ends a sequence. An allocation
-- that fits two sequences of equal length is not joined.
--
-- A snapshot contains the requested size, and the trace contains the size of the block. PyTorch rounds a request up to
-- at most twice its size, and leaves at most 1 MiB of a cached block unsplit (c10/cuda/CUDACachingAllocator.cpp:
-- round_size, should_split).
CREATE OR REPLACE MACRO lib._snapshot_matches(
    runs,
    ranks,
    -- Maximum time between an allocation and its memory event on a shared clock [ns].
    tolerance_ns,
    -- Minimum number of consecutive allocations to align without a shared clock.
    least_run
) AS TABLE
-- Columns:
--   run         VARCHAR         Run name.
--   rank        INTEGER         Rank of the process.
--   device      BIGINT          Device number.
--   event_id    BIGINT          event_id of the allocation, in snapshot_events.
--   bytes       BIGINT [bytes]  Requested size of the allocation.
--   matched_by  VARCHAR         How the allocation was joined: by "address and time", by "time" alone, or by "sequence"; NULL if not joined.
--   op_id       BIGINT          event_id of the innermost operator around the allocation; NULL outside operators.
--   module_id   BIGINT          event_id of the innermost nn.Module call around the allocation; NULL if none or unknown.
--   step        BIGINT          Profiler step; NULL outside steps.
WITH
    _spans AS MATERIALIZED (
        SELECT
            s.run, s.rank, s.start_ns - s.offset_ns AS zero_ns, s.start_ns AS from_ns, s.start_ns + s.dur AS until_ns,
            -- A value above the limit is a Unix time, because no clock that counts from machine start gets so far.
            s.start_ns > 500000000000000000 AS is_unix
        FROM rank_spans AS s
        WHERE lib.is_requested(runs, s.run) AND lib.is_requested(ranks, s.rank) AND s.event_count > 0
    ),
    _made AS MATERIALIZED (
        SELECT
            e.run, e.rank, e.device, e.event_id, e.address, e.bytes, e.time_ns,
            row_number() OVER (PARTITION BY e.run, e.rank, e.device ORDER BY e.event_id) AS position
        FROM snapshot_events AS e
        WHERE
            e.action = 'alloc' AND e.bytes IS NOT NULL AND lib.is_requested(runs, e.run)
            AND lib.is_requested(ranks, e.rank)
    ),
    _traced AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.device, m.event_id, m.addr, m.bytes, m.ts, m.op_id, m.module_id, m.step,
            row_number() OVER (PARTITION BY m.run, m.rank, m.device ORDER BY m.ts, m.profiler_event_index, m.event_id) AS position
        FROM memory_events AS m
        WHERE m.bytes > 0 AND m.device_type <> 0 AND lib.is_requested(runs, m.run) AND lib.is_requested(ranks, m.rank)
    ),
    _shared AS MATERIALIZED (
        SELECT m.*, s.zero_ns
        FROM _made AS m
        JOIN _spans AS s
            ON s.run = m.run AND s.rank = m.rank AND s.is_unix AND m.time_ns BETWEEN s.from_ns - 999 AND s.until_ns
    ),
    _near AS (
        SELECT
            m.run, m.rank, m.device, m.event_id, t.event_id AS memory_id,
            row_number() OVER (PARTITION BY m.run, m.rank, m.device, m.event_id ORDER BY abs(m.zero_ns + t.ts - m.time_ns), t.position) AS of_made,
            row_number() OVER (PARTITION BY m.run, m.rank, m.device, t.event_id ORDER BY abs(m.zero_ns + t.ts - m.time_ns), m.position) AS of_traced
        FROM _shared AS m
        JOIN _traced AS t
            ON t.run = m.run AND t.rank = m.rank AND t.device = m.device AND t.addr = m.address
            AND t.bytes BETWEEN m.bytes AND 2 * m.bytes + 1048576
            AND t.ts BETWEEN m.time_ns - m.zero_ns - tolerance_ns AND m.time_ns - m.zero_ns + tolerance_ns
    ),
    _fitting AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.device, m.event_id, t.event_id AS memory_id, m.position - t.position AS shift, t.position
        FROM _made AS m
        JOIN _traced AS t
            ON t.run = m.run AND t.rank = m.rank AND t.device = m.device AND t.addr = m.address
            AND t.bytes BETWEEN m.bytes AND 2 * m.bytes + 1048576
        WHERE NOT EXISTS (SELECT 1 FROM _shared AS s WHERE s.run = m.run AND s.rank = m.rank)
    ),
    _islands AS (
        SELECT
            f.*,
            f.position - row_number() OVER (PARTITION BY f.run, f.rank, f.device, f.shift ORDER BY f.position) AS island
        FROM _fitting AS f
    ),
    _lengths AS (
        SELECT i.*, count(*) OVER (PARTITION BY i.run, i.rank, i.device, i.shift, i.island) AS length
        FROM _islands AS i
    ),
    _ranked AS (
        SELECT
            l.*,
            rank() OVER of_made AS made_rank,
            count(*) OVER (PARTITION BY l.run, l.rank, l.device, l.event_id, l.length) AS made_ties,
            rank() OVER of_traced AS traced_rank,
            count(*) OVER (PARTITION BY l.run, l.rank, l.device, l.memory_id, l.length) AS traced_ties
        FROM _lengths AS l
        WHERE l.length >= least_run
        WINDOW
            of_made AS (PARTITION BY l.run, l.rank, l.device, l.event_id ORDER BY l.length DESC),
            of_traced AS (PARTITION BY l.run, l.rank, l.device, l.memory_id ORDER BY l.length DESC)
    ),
    _partners AS (
        SELECT n.run, n.rank, n.device, n.event_id, n.memory_id, 'address and time' AS matched_by
        FROM _near AS n
        WHERE n.of_made = 1 AND n.of_traced = 1
        UNION ALL
        SELECT r.run, r.rank, r.device, r.event_id, r.memory_id, 'sequence'
        FROM _ranked AS r
        WHERE r.made_rank = 1 AND r.traced_rank = 1 AND r.made_ties = 1 AND r.traced_ties = 1
    ),
    _paired AS MATERIALIZED (
        SELECT p.*, m.position
        FROM _partners AS p
        JOIN _made AS m ON m.run = p.run AND m.rank = p.rank AND m.event_id = p.event_id
    ),
    -- Without a shared clock, the trace covers the allocations between the first and the last one with a partner; if
    -- no allocation has a partner, the trace may be anywhere.
    _bounds AS (
        SELECT p.run, p.rank, p.device, min(p.position) AS first_position, max(p.position) AS last_position
        FROM _paired AS p
        GROUP BY p.run, p.rank, p.device
    ),
    _during AS MATERIALIZED (
        SELECT s.run, s.rank, s.device, s.event_id, s.bytes, s.time_ns - s.zero_ns AS ts FROM _shared AS s
        UNION ALL
        SELECT m.run, m.rank, m.device, m.event_id, m.bytes, NULL
        FROM _made AS m
        LEFT JOIN _bounds AS b ON b.run = m.run AND b.rank = m.rank AND b.device = m.device
        WHERE
            NOT EXISTS (SELECT 1 FROM _shared AS s WHERE s.run = m.run AND s.rank = m.rank)
            AND EXISTS (SELECT 1 FROM _spans AS s WHERE s.run = m.run AND s.rank = m.rank)
            AND (b.run IS NULL OR m.position BETWEEN b.first_position AND b.last_position)
    ),
    _alone AS MATERIALIZED (
        SELECT d.run, d.rank, d.event_id, d.ts
        FROM _during AS d
        WHERE
            d.ts IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM _paired AS p WHERE p.run = d.run AND p.rank = d.rank AND p.event_id = d.event_id)
    ),
    -- Times of a snapshot are truncated to microseconds.
    _inside AS (
        SELECT a.run, a.rank, a.event_id, c.pid, c.tid, max_by(c.event_id, (c.ts, c.depth)) AS op_id
        FROM _alone AS a
        JOIN cpu_ops AS c ON c.run = a.run AND c.rank = a.rank AND c.ts <= a.ts + 999 AND c.ts + c.dur >= a.ts
        GROUP BY ALL
    ),
    _innermost AS (
        SELECT i.run, i.rank, i.event_id, any_value(i.op_id) AS op_id, count(*) AS thread_count
        FROM _inside AS i
        GROUP BY i.run, i.rank, i.event_id
    ),
    _stepped AS (
        SELECT a.run, a.rank, a.event_id, min(s.step) AS step
        FROM _alone AS a
        JOIN steps AS s ON s.run = a.run AND s.rank = a.rank AND a.ts BETWEEN s.ts AND s.ts + s.dur - 1
        GROUP BY a.run, a.rank, a.event_id
    )
SELECT
    d.run,
    d.rank,
    d.device,
    d.event_id,
    d.bytes,
    coalesce(p.matched_by, CASE WHEN d.ts IS NOT NULL AND coalesce(i.thread_count, 1) = 1 THEN 'time' END) AS matched_by,
    CASE WHEN p.memory_id IS NOT NULL THEN t.op_id WHEN i.thread_count = 1 THEN i.op_id END AS op_id,
    CASE WHEN p.memory_id IS NOT NULL THEN t.module_id WHEN i.thread_count = 1 THEN c.module_id END AS module_id,
    CASE WHEN p.memory_id IS NOT NULL THEN t.step ELSE w.step END AS step
FROM _during AS d
LEFT JOIN _paired AS p ON p.run = d.run AND p.rank = d.rank AND p.event_id = d.event_id
LEFT JOIN _traced AS t ON t.run = p.run AND t.rank = p.rank AND t.event_id = p.memory_id
LEFT JOIN _innermost AS i ON i.run = d.run AND i.rank = d.rank AND i.event_id = d.event_id
LEFT JOIN cpu_ops AS c ON c.run = i.run AND c.rank = i.rank AND c.event_id = i.op_id
LEFT JOIN _stepped AS w ON w.run = d.run AND w.rank = d.rank AND w.event_id = d.event_id
