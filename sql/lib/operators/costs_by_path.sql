-- Self cost of each chain of names; the cost of hidden names is attributed to their callers.
--
-- Stacks are merged if their names are equal apart from object addresses. If a trace has no Python calls, the frames
-- recorded on operators are placed above them.
--
-- Host time is taken from lib.host_self_times. Device time belongs to the stack of the launch; if the launch is
-- unknown, it belongs to the stack of the operator that the trace names. Device time whose launch and operator are
-- unknown has no stack.
CREATE OR REPLACE MACRO lib.costs_by_path(
    runs,
    ranks,
    steps,
    include_last_profiler_step,
    -- Kinds of names to show, as in stacks.kind; NULL means all.
    kinds,
    -- Names to hide, as a regular expression; NULL: none.
    hidden
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   path          UBIGINT[]       Hashes of the names, outermost first (see lib.path_names); empty for cost that no shown name encloses.
--   beginnings    UBIGINT[]       For each name of the path, a hash of all names up to and including that name.
--   call_count    BIGINT [count]  Number of events with the last name.
--   host_ns       BIGINT [ns]     Host self time, including hidden callees.
--   device_count  BIGINT [count]  Number of device operations launched during this host time.
--   device_ns     BIGINT [ns]     Total duration of these device operations.
--   backward_ns   BIGINT [ns]     Device time launched by the backward pass of the operators; it is also included in device_ns of other rows.
WITH RECURSIVE
    _lanes AS MATERIALIZED (
        SELECT
            k.run, k.rank, row_number() OVER (ORDER BY k.run, k.rank) << 40 AS lane,
            NOT EXISTS (FROM python_calls AS p WHERE p.run = k.run AND p.rank = k.rank) AS needs_recorded
        FROM ranks AS k
        WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
    ),
    _calls AS MATERIALIZED (
        SELECT
            h.lane, h.call_id, h.stack_id, h.host_ns,
            lib.is_requested(steps, h.step) AND (include_last_profiler_step OR NOT h.in_last_step) AS is_wanted,
            h.fwd_op_id,
            CASE WHEN l.needs_recorded THEN h.op_id END AS op_id,
            CASE WHEN l.needs_recorded THEN h.call_stack END AS recorded
        FROM lib.host_self_times('_lanes') AS h
        JOIN _lanes AS l ON l.lane = h.lane
    ),
    -- Events without recorded frames get the frames of the enclosing operator. There are no rows if the trace records
    -- frames as events.
    _said AS (
        SELECT c.call_id, c.recorded FROM _calls AS c WHERE c.recorded IS NOT NULL
        UNION ALL
        SELECT c.call_id, s.recorded
        FROM _said AS s
        JOIN (SELECT c.call_id, c.op_id FROM _calls AS c WHERE c.recorded IS NULL AND c.op_id IS NOT NULL) AS c ON c.op_id = s.call_id
    ),
    _launched AS (
        SELECT
            l.lane, g.stack_id, l.lane + coalesce(g.launch_id, g.op_id) AS call_id, l.lane + g.op_id AS op_id,
            l.lane + g.bwd_op_id AS bwd_op_id, g.dur
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        JOIN _lanes AS l ON l.run = g.run AND l.rank = g.rank
    ),
    -- Only operations without a launch in the trace need their operator.
    _placed AS (
        SELECT d.lane, d.stack_id, d.call_id, d.dur FROM _launched AS d WHERE d.stack_id IS NOT NULL
        UNION ALL
        SELECT d.lane, o.stack_id, d.call_id, d.dur
        FROM _launched AS d
        LEFT JOIN _calls AS o ON o.call_id = d.op_id
        WHERE d.stack_id IS NULL
    ),
    _spent AS (
        SELECT
            -- A union next to a recursion takes the types of its first branch.
            c.lane, c.stack_id, c.call_id, 1::BIGINT AS call_count, c.host_ns,
            0::BIGINT AS device_count, 0::BIGINT AS device_ns, 0::BIGINT AS backward_ns
        FROM _calls AS c
        WHERE c.is_wanted
        UNION ALL
        SELECT p.lane, p.stack_id, p.call_id, 0, 0, 1, p.dur, 0 FROM _placed AS p
        UNION ALL
        SELECT d.lane, f.stack_id, f.call_id, 0, 0, 0, 0, d.dur
        FROM _launched AS d
        JOIN _calls AS b ON b.call_id = d.bwd_op_id
        JOIN _calls AS f ON f.call_id = b.fwd_op_id
    ),
    _costs AS MATERIALIZED (
        SELECT
            l.lane, l.run, l.rank, c.stack_id, s.recorded,
            sum(c.call_count)::BIGINT AS call_count, sum(c.host_ns)::BIGINT AS host_ns,
            sum(c.device_count)::BIGINT AS device_count, sum(c.device_ns)::BIGINT AS device_ns,
            sum(c.backward_ns)::BIGINT AS backward_ns
        FROM _spent AS c
        JOIN _lanes AS l ON l.lane = c.lane
        LEFT JOIN _said AS s ON s.call_id = c.call_id
        GROUP BY ALL
    ),
    _stacks AS MATERIALIZED (
        SELECT
            l.lane, s.stack_id, s.parent_stack_id,
            CASE
                WHEN lib.is_requested(kinds, s.kind) AND NOT coalesce(regexp_matches(s.name, hidden), false) THEN
                    hash(lib.frame_name(s.name))
            END AS name_hash
        FROM stacks AS s
        JOIN (SELECT DISTINCT c.lane, c.run, c.rank FROM _costs AS c) AS l ON l.run = s.run AND l.rank = s.rank
    ),
    _recorded AS MATERIALIZED (
        SELECT DISTINCT c.lane, c.recorded, c.stack_id FROM _costs AS c WHERE c.recorded IS NOT NULL
    ),
    -- Recorded frames are placed above each stack for which they were recorded, and thus above the enclosing events
    -- in the stack.
    _below(lane, recorded, stack_id) AS (
        SELECT r.lane, r.recorded, r.stack_id FROM _recorded AS r
        UNION
        SELECT b.lane, b.recorded, s.parent_stack_id
        FROM _below AS b
        JOIN _stacks AS s ON s.lane = b.lane AND s.stack_id = b.stack_id
        WHERE s.parent_stack_id IS NOT NULL
    ),
    _frames AS (
        SELECT
            r.lane, r.recorded, unnest(string_split(r.recorded, ';')) AS name,
            generate_subscripts(string_split(r.recorded, ';'), 1) AS position
        FROM (SELECT DISTINCT r.lane, r.recorded FROM _recorded AS r) AS r
    ),
    _nodes AS MATERIALIZED (
        SELECT
            hash(s.lane, NULL, s.stack_id) AS id,
            CASE WHEN s.parent_stack_id IS NOT NULL THEN hash(s.lane, NULL, s.parent_stack_id) END AS parent_id,
            s.name_hash
        FROM _stacks AS s
        UNION ALL
        SELECT
            hash(b.lane, b.recorded, b.stack_id), hash(b.lane, b.recorded, coalesce(s.parent_stack_id, -1)), s.name_hash
        FROM _below AS b
        JOIN _stacks AS s ON s.lane = b.lane AND s.stack_id = b.stack_id
        UNION ALL
        SELECT
            hash(f.lane, f.recorded, -f.position),
            CASE WHEN f.position < max(f.position) OVER (PARTITION BY f.lane, f.recorded) THEN hash(f.lane, f.recorded, -f.position - 1) END,
            CASE
                WHEN f.name <> '' AND lib.is_requested(kinds, 'frame') AND NOT coalesce(regexp_matches(f.name, hidden), false) THEN
                    hash(lib.frame_name(f.name))
            END
        FROM _frames AS f
    ),
    -- Level by level over few rows, because stacks are distinct.
    _paths(id, path, beginnings, is_shown) AS (
        SELECT
            n.id,
            CASE WHEN n.name_hash IS NULL THEN []::UBIGINT[] ELSE [n.name_hash] END,
            CASE WHEN n.name_hash IS NULL THEN []::UBIGINT[] ELSE [n.name_hash] END,
            n.name_hash IS NOT NULL
        FROM _nodes AS n
        WHERE n.parent_id IS NULL
        UNION ALL
        SELECT
            n.id,
            CASE WHEN n.name_hash IS NULL THEN p.path ELSE list_append(p.path, n.name_hash) END,
            CASE WHEN n.name_hash IS NULL THEN p.beginnings ELSE list_append(p.beginnings, hash(p.beginnings[-1], n.name_hash)) END,
            n.name_hash IS NOT NULL
        FROM _paths AS p
        JOIN _nodes AS n ON n.parent_id = p.id
    )
SELECT
    c.run,
    c.rank,
    any_value(coalesce(p.path, [])) AS path,
    any_value(coalesce(p.beginnings, [])) AS beginnings,
    coalesce(sum(c.call_count) FILTER (p.is_shown), 0)::BIGINT AS call_count,
    sum(c.host_ns)::BIGINT AS host_ns,
    sum(c.device_count)::BIGINT AS device_count,
    sum(c.device_ns)::BIGINT AS device_ns,
    sum(c.backward_ns)::BIGINT AS backward_ns
FROM _costs AS c
LEFT JOIN _paths AS p ON p.id = hash(c.lane, c.recorded, c.stack_id)
GROUP BY c.run, c.rank, p.beginnings[-1]
