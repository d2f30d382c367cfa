-- Text chunks ─▶ typed events.

-- name: event_target
-- Where an event goes: a byte an event, and a comparison of numbers in each extract.
CREATE TYPE event_target AS ENUM (
    'cpu_ops', 'runtime_calls', 'gpu_ops', 'annotations', 'python_calls', 'memory_events', 'flows',
    'counters', 'other_events', 'quarantine', 'refused'
);

-- name: events_of_chunks
-- Text chunks as one row per event: the common fields typed, `args` kept as JSON text.
--
-- `chunks(chunk BIGINT, text VARCHAR, bytes BLOB, is_walked BOOLEAN)` holds comma-separated whole
-- events, as text and, without a copy, as bytes: a chunk may not even be UTF-8. The bytes of a chunk
-- that is refused come back in its first row: the caller walks it from event to event, repairs it
-- and parses it again. Refused is what is not valid JSON; and unless it was walked, what has an
-- element that is no event: a list or a whole file in place of one hides events. Time becomes
-- exact: JSON decimal microseconds ─▶ DECIMAL ─▶ BIGINT nanoseconds, half rounded up, never
-- through a double. `target` is the one place that decides which table an event belongs to.
WITH
    parsed_chunks AS (
        SELECT
            c.*,
            TRY(from_json(
                '[' || c.text || ']',
                '[{"ph": "VARCHAR", "cat": "VARCHAR", "name": "VARCHAR", "pid": "VARCHAR", "tid": "VARCHAR", "ts": "DECIMAL(20,3)", "dur": "VARCHAR", "id": "VARCHAR", "bp": "VARCHAR", "s": "VARCHAR", "args": "JSON", "traceEvents": "VARCHAR"}]'
            )) AS events
        FROM chunks AS c
    ),
    -- One look into the lists before they are opened is cheap, two are not.
    suspected_chunks AS (
        SELECT
            p.*,
            len(list_filter(p.events, lambda e: e.ph IS NULL OR e.traceEvents IS NOT NULL OR e.ts BETWEEN 0 AND 1)) > 0 AS is_suspect
        FROM parsed_chunks AS p
    ),
    checked_chunks AS (
        SELECT
            s.*,
            CASE
                WHEN s.events IS NULL THEN true
                WHEN s.is_walked OR NOT s.is_suspect THEN false
                ELSE len(list_filter(s.events, lambda e: e.ph IS NULL OR e.traceEvents IS NOT NULL)) > 0
            END AS is_refused,
            -- The engine reads 1 and 0 where a time is true or false: only as text they differ.
            CASE
                WHEN s.is_suspect THEN list_transform(
                    TRY(from_json('[' || s.text || ']', '[{"ts": "VARCHAR"}]')),
                    lambda e: e.ts IN ('true', 'false')
                )
            END AS truths
        FROM suspected_chunks AS s
    ),
    -- DECIMAL(20,3) fills 128 bits, and multiplying and casting those costs a tenth of the parse.
    -- Counted from the first event of the chunk, nearly all times fit 64 bits.
    origins AS (
        SELECT
            p.chunk,
            p.events,
            p.truths,
            p.is_refused,
            CASE WHEN p.is_refused THEN p.bytes END AS refused_bytes,
            CASE WHEN abs(p.events[1].ts) <= 3e15::DECIMAL(20, 3) THEN p.events[1].ts ELSE 0 END AS origin
        FROM checked_chunks AS p
    ),
    events AS (
        SELECT
            p.chunk,
            p.origin,
            TRY_CAST(p.origin * 1000 AS BIGINT) AS origin_ns,
            p.is_refused,
            p.refused_bytes,
            unnest(range(coalesce(len(p.events), 1))) AS position,
            -- Padded with NULL where it is the shorter one: the row of a refused chunk.
            unnest(p.events) AS e,
            unnest(p.truths) AS is_truth
        FROM origins AS p
    ),
    timed_events AS (
        SELECT
            v.*,
            CASE WHEN v.is_truth IS NOT true THEN v.e.ts END AS ts_us,
            ts_us - v.origin AS since_origin,
            -- Read as text: the engine takes true for 1. A duration beyond 64 bits is no duration.
            TRY_CAST(v.e.dur AS DECIMAL(18, 3)) AS dur_us
        FROM events AS v
    )
SELECT
    v.chunk,
    v.position,
    v.e.ph AS ph,
    v.e.cat AS cat,
    -- Analyses group and join by names, so that a missing name or a null is the empty text.
    coalesce(v.e.name, '') AS name,
    v.e.pid AS pid,
    v.e.tid AS tid,
    -- 9e11 us times 1000 still fit DECIMAL(18,3). The engine may cast a value beside those that CASE chose,
    -- so that no cast may fail.
    CASE
        WHEN abs(v.since_origin) < 9e11::DECIMAL(20, 3) THEN v.origin_ns + (TRY_CAST(v.since_origin AS DECIMAL(18, 3)) * 1000)::BIGINT
        ELSE TRY_CAST(v.ts_us * 1000 AS BIGINT)
    END AS ts,
    CASE WHEN abs(v.dur_us) < 9e11::DECIMAL(18, 3) THEN (v.dur_us * 1000)::BIGINT END AS dur,
    v.e.id AS id,
    v.e.bp AS bp,
    v.e.s AS scope,
    v.e.args AS args,
    CASE WHEN v.position = 0 THEN v.refused_bytes END AS refused_bytes,
    CASE
        WHEN v.is_refused THEN 'refused'::event_target
        -- 3e15 us last to 2065, so that the end of any event minus the start of any other fits 64 bits of
        -- nanoseconds. No profile lasts 9e11 us, ten days, and ten thousand events of that length add up to 64 bits.
        WHEN v.e.ph IS NULL OR abs(v.ts_us) > 3e15::DECIMAL(20, 3) THEN 'quarantine'::event_target
        WHEN v.e.ph = 'X' THEN CASE
            WHEN v.ts_us IS NULL OR v.dur_us IS NULL OR abs(v.dur_us) >= 9e11::DECIMAL(18, 3) THEN 'quarantine'::event_target
            -- From vendors.csv.
            ELSE category_table(v.e.cat)
        END
        WHEN v.e.ph <> 'M' AND v.ts_us IS NULL THEN 'quarantine'::event_target
        WHEN v.e.ph IN ('s', 't', 'f') THEN 'flows'::event_target
        WHEN v.e.ph IN ('i', 'I') AND v.e.name = '[memory]' THEN 'memory_events'::event_target
        WHEN v.e.ph = 'C' THEN 'counters'::event_target
        ELSE 'other_events'::event_target
    END AS target
FROM timed_events AS v;

-- name: exact_args
-- Arguments for from_json: keys of whole numbers whose value is none become null.
--
-- The engine rounds 1.5 to 2 and takes true for 1 where a BIGINT is wanted. A null leaves the
-- column empty, and the arguments stay in event_args as they were written. `args` is JSON as the
-- engine prints it: compact, numbers as they were written (DuckDB 2.0.0) or as the shortest text of
-- their double (2.0.1), so that only rows with a point or a negative exponent pay for the regular
-- expression. `whole_keys` are the keys, as alternatives of
-- one. Text that holds a whole number is that number; with a point or an e in it, it stays text.
CREATE OR REPLACE MACRO exact_args(args, whole_keys) AS
    CASE
        WHEN contains(args, '.') OR contains(args, 'e-') OR contains(args, 'E-') OR contains(args, 'true') OR contains(args, 'false')
            THEN regexp_replace(
                args,
                '("(?:' || whole_keys || ')":)(?:true|false'
                -- Beyond 2^53 a fraction has gone through a double.
                || '|-?[0-9]{16,}\.[0-9]*(?:[eE][+-]?[0-9]+)?'
                || '|-?[0-9]+(?:\.[0-9]*[1-9][0-9]*(?:[eE][+-]?[0-9]+)?|(?:\.[0-9]+)?[eE][+-]?[0-9]+)'
                || '|"[^"\\]*[.eE][^"\\]*"'
                || '|\[(?:[^\[\]\\"]|"[^"\\]*")*(?:\.[0-9]*[1-9]|[eE]|"[^"\\]*[.eE][^"\\]*")(?:[^\[\]\\"]|"[^"\\]*")*\])',
                '\1null',
                'g'
            )
        ELSE args
    END;
