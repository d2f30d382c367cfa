-- The graph of a rank whose longest path is searched in Python, and what explains a missing path.

-- name: nodes
-- Rows of critical_path_nodes for one rank. Sorting by run, too, would take 20 % longer.
SELECT n.* EXCLUDE (depth)
FROM lib.critical_path_nodes(
    $runs, $ranks, $steps, $include_last_profiler_step, $annotation, $first_instance, $last_instance, $data_load_names
) AS n
ORDER BY n.node_id;

-- name: edges
-- Rows of critical_path_edges between known nodes.
SELECT e.*
FROM lib.edges_between('path_nodes', $runs, $ranks, $include_launch_edges, $infer_syncs) AS e
ORDER BY e.begin_node_id, e.end_node_id, e.edge_type;

-- name: events
-- Events that belong to edges.
WITH
    wanted AS (
        SELECT unnest($ids::BIGINT[]) AS event_id
    )
SELECT
    e.event_id, e.name, e.category, e.pid, e.tid,
    coalesce(CASE WHEN e.table_name = 'gpu_ops' THEN e.tid END, -1) AS stream
FROM events AS e
JOIN wanted AS w ON w.event_id = e.event_id
WHERE e.run = $run AND e.rank = $rank
ORDER BY e.event_id;

-- name: windows
-- Number of host events whose names contain a string: in the trace, and in scope.
SELECT
    count(*),
    count(*) FILTER (
        ($include_last_profiler_step OR NOT h.in_last_step)
        AND ($steps::BIGINT[] IS NULL OR list_contains($steps::BIGINT[], h.step))
    )
FROM lib.host_events([$run], [$rank::INTEGER]) AS h
WHERE contains(h.name, $annotation);

-- name: skewed_devices
-- Devices whose clock differs from the host's. Nodes use the host's clock, events in the trace that of their device.
SELECT k.device, k.skew_ns
FROM lib.device_clock_skew([$run], [$rank::INTEGER]) AS k
WHERE k.skew_ns <> 0;

-- name: syncs
-- Number of synchronization records, and of other device activity.
SELECT count(*) FILTER (g.class = 'sync'), count(*) FILTER (g.class <> 'sync')
FROM gpu_ops AS g
WHERE g.run = $run AND g.rank = $rank;
