-- Edges of the critical path graph (lib.edges_between) between the nodes of lib.critical_path_nodes.
CREATE OR REPLACE MACRO lib.critical_path_edges(
    runs,
    ranks,
    steps,
    include_last_profiler_step,
    -- Substring of the name of the host events that span the window; NULL or empty means the whole trace.
    annotation,
    -- Index of the event that starts the window, among the events that match annotation in time order, from 0.
    first_instance,
    -- Index of the event that ends the window; NULL means the event that starts it.
    last_instance,
    -- Substrings of the names of annotations and Python frames that load data; NULL means none.
    data_load_names,
    -- Whether every device operation depends on its launch, with weight 0, even without a delay edge.
    include_launch_edges,
    -- Whether to infer unrecorded waits from the operations that ended during them.
    infer_syncs
) AS TABLE
-- Columns: those of critical_path_edges_v1.
WITH
    _nodes AS MATERIALIZED (
        SELECT n.*
        FROM lib.critical_path_nodes(
            runs, ranks, steps, include_last_profiler_step, annotation, first_instance, last_instance, data_load_names
        ) AS n
    )
SELECT e.*
FROM lib.edges_between('_nodes', runs, ranks, include_launch_edges, infer_syncs) AS e
