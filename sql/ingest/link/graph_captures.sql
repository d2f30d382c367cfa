-- Graph replays, and the launches from which the graphs were captured. Used only if captures are given.

-- name: captured_launches
-- Launches of each thread between the beginning and the end of a stream capture, in order: the nodes of one graph.
--
-- Exactly one trace is staged. name is NULL if the recorder writes no name, as CUPTI does for launches that only build
-- a graph. graph_tokens is the size that the annotation around the capture states (vLLM: capture_<tokens>_<mode>). The
-- frame is the innermost frame outside frameworks, compilers and function wrappers.
WITH RECURSIVE
    marks AS (
        SELECT
            r.pid, r.tid, r.ts, contains(r.name, 'BeginCapture') AS is_begin,
            lead(r.ts) OVER (PARTITION BY r.pid, r.tid ORDER BY r.ts, r.event_id) AS end_ts
        FROM staged_runtime_calls AS r
        WHERE regexp_matches(r.name, '^(cuda|hip|cu)Stream(Begin|End)Capture')
    ),
    graphs AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY m.ts, m.pid, m.tid)::INTEGER - 1 AS graph, m.pid, m.tid, m.ts, m.end_ts
        FROM marks AS m
        WHERE m.is_begin AND m.end_ts IS NOT NULL
    ),
    launches AS MATERIALIZED (
        SELECT
            g.graph, r.event_id, r.ts, t.parent_id, t.op_id, t.module_id, t.frame_id,
            CASE
                WHEN contains(lower(r.name), 'memcpy') THEN '<memcpy>'
                WHEN contains(lower(r.name), 'memset') THEN '<memset>'
                ELSE json_extract_string(r.args, '$.kernel')
            END AS name
        FROM graphs AS g
        JOIN staged_runtime_calls AS r ON r.pid = g.pid AND r.tid = g.tid AND r.ts > g.ts AND r.ts < g.end_ts
        JOIN call_tree AS t ON t.event_id = r.event_id
        WHERE regexp_matches(r.name, '(?i)launchkernel|launchcooperativekernel|memcpy\w*async|memset\w*async')
    ),
    labels AS (
        SELECT g.graph, arg_max(a.name, (a.ts, a.event_id)) AS name
        FROM graphs AS g
        JOIN staged_annotations AS a ON a.pid = g.pid AND a.tid = g.tid AND a.ts <= g.ts AND a.ts + a.dur >= g.end_ts
        WHERE starts_with(a.name, 'capture_')
        GROUP BY g.graph
    ),
    frames AS MATERIALIZED (
        SELECT
            p.event_id, t.frame_id AS parent_id, p.name,
            NOT regexp_matches(
                p.name,
                '^<|^nn\.Module: |(^|/)(torch|triton)/|(^|/)(contextlib|functools|inspect|typing|enum)\.py\(|: _?(wrapper|wrapped|decorated|decorate_context)$|torchinductor|fx_codegen|^/tmp/'
            ) AS is_shown
        FROM staged_python_calls AS p
        JOIN call_tree AS t ON t.event_id = p.event_id
        WHERE NOT starts_with(p.name, 'nn.Module: ')
    ),
    climbing(start_id, at_id, name) AS (
        SELECT f.event_id, f.parent_id, CASE WHEN f.is_shown THEN f.name END
        FROM frames AS f
        SEMI JOIN launches AS l ON l.frame_id = f.event_id
        UNION ALL
        SELECT c.start_id, f.parent_id, CASE WHEN f.is_shown THEN f.name END
        FROM climbing AS c
        JOIN frames AS f ON f.event_id = c.at_id
        WHERE c.name IS NULL
    ),
    lines AS (
        SELECT c.start_id, any_value(c.name) AS name FROM climbing AS c WHERE c.name IS NOT NULL GROUP BY c.start_id
    ),
    modules AS MATERIALIZED (
        SELECT p.event_id, t.module_id AS parent_id, regexp_replace(p.name, '^nn\.Module: ', '') AS name
        FROM staged_python_calls AS p
        JOIN call_tree AS t ON t.event_id = p.event_id
        WHERE starts_with(p.name, 'nn.Module: ')
    ),
    paths(module_id, path) AS (
        SELECT m.event_id, m.name FROM modules AS m WHERE m.parent_id IS NULL
        UNION ALL
        SELECT m.event_id, p.path || '/' || m.name FROM paths AS p JOIN modules AS m ON m.parent_id = p.module_id
    )
SELECT
    l.graph AS graph_number,
    row_number() OVER (PARTITION BY l.graph ORDER BY l.ts, l.event_id)::INTEGER - 1 AS node_number,
    l.name,
    b.name AS graph_label,
    TRY_CAST(regexp_extract(b.name, '^capture_(\d+)_', 1) AS BIGINT) AS graph_tokens,
    own_id(l.op_id) AS captured_op_id,
    o.name AS captured_op_name,
    o.input_dims,
    o.input_types,
    o.concrete_inputs,
    p.path AS module_path,
    f.name AS captured_frame
FROM launches AS l
ANTI JOIN launches AS u ON u.event_id = l.parent_id
LEFT JOIN labels AS b ON b.graph = l.graph
LEFT JOIN staged_cpu_ops AS o ON o.event_id = l.op_id
LEFT JOIN paths AS p ON p.module_id = l.module_id
LEFT JOIN lines AS f ON f.start_id = l.frame_id
ORDER BY l.graph, node_number;

-- name: replayed_graphs
-- Device operations of each graph replay in the order of the nodes: by node id if recorded, otherwise by start. tokens is
-- the minimum number of tokens that the iteration around the replay processes; NULL if no annotation states it.
WITH
    ops AS (
        SELECT
            c.event_id AS launch_id, part_of(c.event_id) AS part, c.pid, c.tid, c.ts AS launch_ts, x.event_id, x.ts, x.graph_node_id,
            CASE
                -- On ROCm, copies and fills are kernels.
                WHEN l.kind = 'memcpy' OR starts_with(x.name, '__amd_rocclr_copyBuffer') THEN '<memcpy>'
                WHEN l.kind = 'memset' OR starts_with(x.name, '__amd_rocclr_fillBuffer') THEN '<memset>'
                ELSE x.name
            END AS name
        FROM device_links AS l
        JOIN staged_runtime_calls AS c ON c.event_id = l.call.id
        JOIN staged_gpu_ops AS x ON x.event_id = l.event_id
        WHERE contains(c.name, 'GraphLaunch') AND l.class <> 'sync'
    ),
    replays AS MATERIALIZED (
        SELECT
            o.launch_id, o.part, o.pid, o.tid, o.launch_ts,
            list(o.event_id ORDER BY o.graph_node_id, o.ts, o.event_id) AS event_ids,
            list(o.name ORDER BY o.graph_node_id, o.ts, o.event_id) AS names
        FROM ops AS o
        GROUP BY ALL
    ),
    formats AS (
        SELECT f.format, f.prefix, f.pattern
        FROM read_csv($formats, header = true, auto_detect = false, delim = ',', quote = '"', escape = '"', columns = {'format': 'VARCHAR', 'framework': 'VARCHAR', 'priority': 'INTEGER', 'is_shared': 'BOOLEAN', 'prefix': 'VARCHAR', 'pattern': 'VARCHAR', 'source': 'VARCHAR'}) AS f
    ),
    fields AS (
        SELECT f.format, f.field, f.pattern
        FROM read_csv($fields, header = true, auto_detect = false, delim = ',', quote = '"', escape = '"', columns = {'format': 'VARCHAR', 'field': 'VARCHAR', 'pattern': 'VARCHAR'}) AS f
    ),
    names AS (
        SELECT DISTINCT a.name FROM staged_annotations AS a WHERE a.cat = 'user_annotation'
    ),
    stated AS (
        SELECT n.name, f.format, d.field, TRY_CAST(regexp_extract(n.name, d.pattern, 1) AS BIGINT) AS number
        FROM names AS n
        JOIN formats AS f ON starts_with(n.name, f.prefix) AND regexp_matches(n.name, f.pattern)
        LEFT JOIN fields AS d ON d.format = f.format AND d.field IN ('context_tokens', 'generation_tokens', 'generation_requests', 'requests')
    ),
    sized AS (
        SELECT
            s.name,
            greatest(
                coalesce(min(s.number) FILTER (s.field = 'context_tokens'), 0)
                + coalesce(min(s.number) FILTER (s.field = 'generation_tokens'), min(s.number) FILTER (s.field = 'generation_requests'), 0),
                coalesce(min(s.number) FILTER (s.field = 'requests'), 0)
            ) AS tokens
        FROM stated AS s
        GROUP BY s.name
    ),
    iterations AS (
        SELECT part_of(a.event_id) AS part, a.pid, a.tid, a.ts, a.ts + a.dur AS end_ts, a.event_id, z.tokens
        FROM staged_annotations AS a
        JOIN sized AS z ON z.name = a.name
        WHERE a.cat = 'user_annotation'
    )
SELECT
    r.launch_id, r.part, r.pid, r.tid, r.event_ids, r.names,
    CASE WHEN r.launch_ts <= i.end_ts THEN i.event_id END AS iteration_id,
    CASE WHEN r.launch_ts <= i.end_ts THEN nullif(i.tokens, 0) END AS tokens
FROM replays AS r
ASOF LEFT JOIN iterations AS i ON i.part = r.part AND i.pid = r.pid AND i.tid = r.tid AND r.launch_ts >= i.ts
ORDER BY r.part, r.pid, r.tid, r.launch_ts, r.launch_id;

-- name: graph_matches
-- Captured launch of each replayed device operation, with everything that is known about the launch.
CREATE OR REPLACE TABLE graph_matches AS
SELECT m.event_id, m.match_method, c.* EXCLUDE (name)
FROM matched_nodes AS m
JOIN captured_launches AS c ON c.source = m.source AND c.graph_number = m.graph_number AND c.node_number = m.node_number
ORDER BY m.event_id;
