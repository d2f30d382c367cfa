-- Convert text chunks to typed events.

-- name: event_target
-- Target table of an event. An ENUM takes one byte per event, and filters on it compare numbers instead of strings.
CREATE TYPE event_target AS ENUM (
    'cpu_ops', 'runtime_calls', 'gpu_ops', 'annotations', 'python_calls', 'memory_events', 'flows',
    'counters', 'other_events', 'quarantine', 'refused'
);

-- name: events_of_chunks
-- Text chunks as one row per event: common fields are typed, and `args` stays a JSON string.
--
-- `chunks(chunk BIGINT, text VARCHAR, bytes BLOB, is_walked BOOLEAN)` contains comma-separated whole events, as text
-- and, without a copy, as bytes, because a chunk may not be valid UTF-8. The first row of a rejected chunk returns its
-- bytes; the caller walks the chunk event by event, repairs it and parses it again. A chunk is rejected if it is not
-- valid JSON. Unless the chunk was walked, it is also rejected if an element is not an event, because such an element
-- (a list or a whole file) may hide events.
--
-- Times become exact: JSON decimal microseconds ─▶ DECIMAL ─▶ BIGINT nanoseconds, half rounded up, never through a
-- double. Only `target` decides which table stores an event.
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
    -- Inspecting the lists before unnesting is cheap only if it is done once.
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
            -- The engine reads true and false as the times 1 and 0; only the string shows the difference.
            CASE
                WHEN s.is_suspect THEN list_transform(
                    TRY(from_json('[' || s.text || ']', '[{"ts": "VARCHAR"}]')),
                    lambda e: e.ts IN ('true', 'false')
                )
            END AS truths
        FROM suspected_chunks AS s
    ),
    -- DECIMAL(20,3) takes 128 bits, and multiplying and casting it takes a tenth of the parse time. Relative to the
    -- first event of the chunk, nearly all times fit 64 bits.
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
            -- Unnesting pads the shorter list with NULL, which yields the row of a rejected chunk.
            unnest(p.events) AS e,
            unnest(p.truths) AS is_truth
        FROM origins AS p
    ),
    timed_events AS (
        SELECT
            v.*,
            CASE WHEN v.is_truth IS NOT true THEN v.e.ts END AS ts_us,
            ts_us - v.origin AS since_origin,
            -- Durations are read as strings, because the engine converts true to 1. A duration beyond 64 bits is
            -- invalid.
            TRY_CAST(v.e.dur AS DECIMAL(18, 3)) AS dur_us
        FROM events AS v
    )
SELECT
    v.chunk,
    v.position,
    v.e.ph AS ph,
    v.e.cat AS cat,
    -- Analyses group and join by name, so a missing or null name becomes an empty string.
    coalesce(v.e.name, '') AS name,
    v.e.pid AS pid,
    v.e.tid AS tid,
    -- 9e11 us times 1000 fits DECIMAL(18,3). The engine may evaluate a cast outside its CASE branch, so no cast may
    -- fail.
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
        -- 3e15 us is in 2065, so the time between any two events fits into 64 bits of nanoseconds. No profile lasts
        -- 9e11 us (ten days), and the sum of ten thousand events of this length fits into 64 bits.
        WHEN v.e.ph IS NULL OR abs(v.ts_us) > 3e15::DECIMAL(20, 3) THEN 'quarantine'::event_target
        WHEN v.e.ph = 'X' THEN CASE
            WHEN v.ts_us IS NULL OR v.dur_us IS NULL OR abs(v.dur_us) >= 9e11::DECIMAL(18, 3) THEN 'quarantine'::event_target
            -- Generated from vendors.csv.
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
-- Arguments for from_json: values of integer-typed keys that are not integers become null.
--
-- The engine rounds 1.5 to 2 and converts true to 1 for a BIGINT. With null, the column stays empty, and event_args
-- keeps the original arguments. `args` is JSON as printed by the engine: compact, with numbers as written (DuckDB
-- 2.0.0) or in the shortest form that round-trips as a double (2.0.1). Only rows with a decimal point, a negative
-- exponent, true or false therefore need the regular expression. `whole_keys` are the keys as regular expression
-- alternatives. A string that contains an integer counts as that integer; a string with a point or an e does not.
CREATE OR REPLACE MACRO exact_args(args, whole_keys) AS
    CASE
        WHEN contains(args, '.') OR contains(args, 'e-') OR contains(args, 'E-') OR contains(args, 'true') OR contains(args, 'false')
            THEN regexp_replace(
                args,
                '("(?:' || whole_keys || ')":)(?:true|false'
                -- Above 2^53, a fraction has been rounded to a double.
                || '|-?[0-9]{16,}\.[0-9]*(?:[eE][+-]?[0-9]+)?'
                || '|-?[0-9]+(?:\.[0-9]*[1-9][0-9]*(?:[eE][+-]?[0-9]+)?|(?:\.[0-9]+)?[eE][+-]?[0-9]+)'
                || '|"[^"\\]*[.eE][^"\\]*"'
                || '|\[(?:[^\[\]\\"]|"[^"\\]*")*(?:\.[0-9]*[1-9]|[eE]|"[^"\\]*[.eE][^"\\]*")(?:[^\[\]\\"]|"[^"\\]*")*\])',
                '\1null',
                'g'
            )
        ELSE args
    END;
