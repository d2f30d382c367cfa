-- Self cost of each chain of names; the cost of hidden names is attributed to their callers.
--
-- Stacks are merged if their names are equal apart from object addresses. If a trace has no Python calls, the frames
-- recorded on operators are placed above them.
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
    _costs AS MATERIALIZED (
        SELECT l.lane, c.*
        FROM lib._call_costs(runs, ranks, steps, include_last_profiler_step) AS c
        JOIN (SELECT k.run, k.rank, row_number() OVER (ORDER BY k.run, k.rank) AS lane FROM ranks AS k) AS l
            ON l.run = c.run AND l.rank = c.rank
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
        SELECT r.lane, r.recorded, unnest(string_split(r.recorded, ';')) AS name, generate_subscripts(string_split(r.recorded, ';'), 1) AS position
        FROM (SELECT DISTINCT r.lane, r.recorded FROM _recorded AS r) AS r
    ),
    _nodes AS MATERIALIZED (
        SELECT hash(s.lane, NULL, s.stack_id) AS id, CASE WHEN s.parent_stack_id IS NOT NULL THEN hash(s.lane, NULL, s.parent_stack_id) END AS parent_id, s.name_hash
        FROM _stacks AS s
        UNION ALL
        SELECT hash(b.lane, b.recorded, b.stack_id), hash(b.lane, b.recorded, coalesce(s.parent_stack_id, -1)), s.name_hash
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
