-- Hardware counters of each kernel (CUPTI profiler mode) with the operators that launched it.
--
-- In this mode, the trace has one range per kernel instead of the kernel itself. A range belongs to the launch with
-- the same correlation id. If ranges have no correlation id, the n-th range of a rank belongs to the n-th kernel
-- launch of the rank, provided that there are as many ranges as launches. If the launch is unknown, or no operator
-- encloses it, the operator columns are NULL. There is one row per range and counter.
--
-- Title: Hardware counters
-- Shown: rank, counter, value, name, top_level_op, bottom_level_op, dur
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_cupti_counter_data_with_operators
-- Needs: CUPTI profiler ranges (experimental_config with profiler_metrics)
CREATE OR REPLACE MACRO cupti_counters_by_operator_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run              VARCHAR      Run name.
--   rank             INTEGER      Rank of the process.
--   event_id         BIGINT       event_id of the range.
--   ts               BIGINT [ns]  Start of the range, relative to the run's first event.
--   dur              BIGINT [ns]  Duration of the range; profilers record the same duration for all ranges.
--   name             VARCHAR      Kernel name.
--   counter          VARCHAR      Name of the counter; NULL for a range without counters.
--   value            DOUBLE [1]   Value of the counter; NULL if not a number.
--   flop_weight      BIGINT [1]   Floating-point operations per count: 2 for fma counters, 1 for mul and add counters; NULL for others.
--   matched_by       VARCHAR      correlation or position; NULL if the launch is unknown.
--   launch_id        BIGINT       event_id of the launch.
--   op_id            BIGINT       event_id of the innermost operator that encloses the launch.
--   top_level_op     VARCHAR      Outermost operator that encloses the launch.
--   bottom_level_op  VARCHAR      Innermost operator that encloses the launch.
--   op_stack         VARCHAR      Operators that enclose the launch, outermost first, as JSON.
WITH RECURSIVE
    ranges AS (
        SELECT
            e.run, e.rank, e.span, e.event_id, e.ts, e.dur, e.name, e.args,
            TRY_CAST(e.args ->> '$.correlation' AS BIGINT) AS correlation,
            count(*) OVER (PARTITION BY e.run, e.rank, e.span) AS range_count,
            row_number() OVER (PARTITION BY e.run, e.rank, e.span ORDER BY e.ts, e.event_id) AS position
        FROM other_events AS e
        WHERE
            e.category = 'cuda_profiler_range'
            AND e.phase = 'X'
            AND lib.is_requested(runs, e.run)
            AND lib.is_requested(ranks, e.rank)
    ),
    -- A driver call inside a runtime call of the same launch is not a separate launch.
    launches AS (
        SELECT c.run, c.rank, c.span, c.event_id, c.ts, c.correlation, c.op_id, c.step, c.in_last_step
        FROM runtime_calls AS c
        WHERE
            regexp_matches(lower(c.name), 'launch.*kernel')
            -- Few jobs have ranges; without ranges, no calls are read.
            AND (c.run, c.rank) IN (SELECT (r.run, r.rank) FROM ranges AS r)
            AND lib.is_requested(runs, c.run)
            AND lib.is_requested(ranks, c.rank)
        QUALIFY row_number() OVER (
            PARTITION BY c.run, c.rank, c.span, coalesce(c.correlation, -1 - c.event_id) ORDER BY c.depth, c.ts, c.event_id
        ) = 1
    ),
    numbered AS (
        SELECT
            l.*,
            count(*) OVER (PARTITION BY l.run, l.rank, l.span) AS launch_count,
            row_number() OVER (PARTITION BY l.run, l.rank, l.span ORDER BY l.ts, l.event_id) AS position
        FROM launches AS l
    ),
    matched AS (
        SELECT
            r.run, r.rank, r.event_id, r.ts, r.dur, r.name, r.args,
            coalesce(a.event_id, p.event_id) AS launch_id,
            coalesce(a.op_id, p.op_id) AS op_id,
            CASE WHEN a.event_id IS NOT NULL THEN 'correlation' WHEN p.event_id IS NOT NULL THEN 'position' END AS matched_by
        FROM ranges AS r
        LEFT JOIN numbered AS a ON a.run = r.run AND a.rank = r.rank AND a.span = r.span AND a.correlation = r.correlation
        LEFT JOIN numbered AS p
            ON r.correlation IS NULL AND p.run = r.run AND p.rank = r.rank AND p.span = r.span AND p.position = r.position
            AND p.launch_count = r.range_count
        WHERE
            lib.is_requested(steps, coalesce(a.step, p.step))
            AND (include_last_profiler_step OR NOT coalesce(a.in_last_step, p.in_last_step, false))
    ),
    around AS (
        SELECT m.run, m.rank, m.event_id, m.op_id AS around_id, 0 AS height
        FROM matched AS m
        UNION ALL
        SELECT a.run, a.rank, a.event_id, c.parent_op_id, a.height + 1
        FROM around AS a
        JOIN cpu_ops AS c ON c.run = a.run AND c.rank = a.rank AND c.event_id = a.around_id
        WHERE lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    stacks AS (
        SELECT a.run, a.rank, a.event_id, list(c.name ORDER BY a.height DESC) AS op_names
        FROM around AS a
        JOIN cpu_ops AS c ON c.run = a.run AND c.rank = a.rank AND c.event_id = a.around_id
        WHERE lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        GROUP BY a.run, a.rank, a.event_id
    ),
    counted AS (
        SELECT
            m.run, m.rank, m.event_id,
            unnest(json_keys(m.args)) AS counter,
            unnest(list_transform(json_keys(m.args), lambda k: m.args ->> ('/' || replace(replace(k, '~', '~0'), '/', '~1')))) AS text
        FROM matched AS m
    )
SELECT
    m.run,
    m.rank,
    m.event_id,
    m.ts,
    m.dur,
    m.name,
    n.counter,
    TRY_CAST(n.text AS DOUBLE) AS value,
    CASE
        WHEN regexp_matches(n.counter, '^smsp__sass_thread_inst_executed_op_[fhd]fma_pred_on\.sum$') THEN 2
        WHEN regexp_matches(n.counter, '^smsp__sass_thread_inst_executed_op_[fhd](mul|add)_pred_on\.sum$') THEN 1
    END::BIGINT AS flop_weight,
    m.matched_by,
    m.launch_id,
    m.op_id,
    s.op_names[1] AS top_level_op,
    s.op_names[-1] AS bottom_level_op,
    to_json(s.op_names)::VARCHAR AS op_stack
FROM matched AS m
LEFT JOIN counted AS n
    ON n.run = m.run AND n.rank = m.rank AND n.event_id = m.event_id AND n.counter <> 'correlation'
LEFT JOIN stacks AS s ON s.run = m.run AND s.rank = m.rank AND s.event_id = m.event_id
ORDER BY m.run, m.rank, m.ts, m.event_id, n.counter
