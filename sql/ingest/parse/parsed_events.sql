-- One batch of text chunks, one row per event: the common fields typed, `args` kept as JSON text.
--
-- `chunks(chunk BIGINT, text VARCHAR)` holds comma-separated whole events. TRY makes a chunk that
-- is not valid JSON yield no row; the caller finds it by its absence and repairs it. Time becomes
-- exact: JSON decimal microseconds ─▶ DECIMAL(20,3) ─▶ BIGINT nanoseconds, half rounded up, never
-- through a double. `target` is the one place that decides which table an event belongs to.
CREATE OR REPLACE TEMP TABLE parsed_events AS
WITH
    parsed_chunks AS (
        SELECT
            c.chunk,
            TRY(from_json(
                '[' || c.text || ']',
                '[{"ph": "VARCHAR", "cat": "VARCHAR", "name": "VARCHAR", "pid": "VARCHAR", "tid": "VARCHAR", "ts": "DECIMAL(20,3)", "dur": "DECIMAL(20,3)", "id": "VARCHAR", "bp": "VARCHAR", "s": "VARCHAR", "args": "JSON"}]'
            )) AS events
        FROM chunks AS c
    ),
    events AS (
        SELECT p.chunk, unnest(range(len(p.events))) AS position, unnest(p.events) AS e
        FROM parsed_chunks AS p
    )
SELECT
    v.chunk,
    v.position,
    v.e.ph AS ph,
    v.e.cat AS cat,
    v.e.name AS name,
    v.e.pid AS pid,
    v.e.tid AS tid,
    (v.e.ts * 1000)::BIGINT AS ts,
    (v.e.dur * 1000)::BIGINT AS dur,
    v.e.id AS id,
    v.e.bp AS bp,
    v.e.s AS scope,
    v.e.args AS args,
    CASE
        WHEN v.e.ph IS NULL THEN 'quarantine'
        WHEN v.e.ph = 'X' THEN CASE
            WHEN v.e.ts IS NULL OR v.e.dur IS NULL THEN 'quarantine'
            WHEN v.e.cat IN ('cpu_op', 'Operator') THEN 'cpu_ops'
            WHEN v.e.cat = 'python_function' THEN 'python_calls'
            WHEN v.e.cat IN (
                'kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_sync', 'mtia_ccp_events',
                'Kernel', 'Memcpy', 'Memset'
            ) THEN 'gpu_ops'
            WHEN v.e.cat = 'Runtime' OR v.e.cat LIKE '%\_runtime' ESCAPE '\' OR v.e.cat LIKE '%\_driver' ESCAPE '\'
                THEN 'runtime_calls'
            WHEN v.e.cat IN ('user_annotation', 'gpu_user_annotation') THEN 'annotations'
            ELSE 'other_events'
        END
        WHEN v.e.ph IN ('s', 't', 'f') THEN CASE WHEN v.e.ts IS NULL THEN 'quarantine' ELSE 'flows' END
        WHEN v.e.ph IN ('i', 'I') AND v.e.name = '[memory]' THEN CASE WHEN v.e.ts IS NULL THEN 'quarantine' ELSE 'memory_events' END
        WHEN v.e.ph = 'C' THEN CASE WHEN v.e.ts IS NULL THEN 'quarantine' ELSE 'counters' END
        ELSE 'other_events'
    END AS target
FROM events AS v
