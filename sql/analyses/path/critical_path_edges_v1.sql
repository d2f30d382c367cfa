-- Edges of the critical path graph: dependencies between events, with their durations.
--
-- A node is the start or the end of an event; an edge leads from a node to one that must come later.
--
-- - operator: time inside a host operator or call, or the duration of a device operation. If a device operation is
--   still running when the next operation on its stream starts, the edge covers only the time until that start.
-- - dependency: an ordering without a duration, between outermost operators of a thread, between a thread and the
--   thread that runs its backward pass, or between overlapping launches of two threads.
-- - kernel_launch_delay: from the start of a call to the operation that it launched, if the stream was idle at that
--   start.
-- - kernel_kernel_delay: if the stream was busy at that start, from the end of the operation that ended last on the
--   stream to the launched operation.
-- - sync_dependency: from a device operation to the call that waits for it, or to the operation after a wait on another
--   stream; without a duration. The last part of a waiting call has no duration of its own either, because this part
--   counts toward the awaited operation.
--
-- Synchronization records show which call waits for which operation. Most traces have no such records, because they
-- require enable_cuda_sync_events=True. For these traces, waits are inferred. With infer_syncs := false, unrecorded
-- waits are omitted as in HTA, so no path leads from the device back to the host.
--
-- The longest path over these edges is the critical path: hta-sql critical-path, or hta_sql.critical_path.
--
-- Title: Edges of the critical path
-- Shown: rank, edge_type, weight_ns, bound_by, begin_event_id, end_event_id
-- Status: stable
-- Since: 0.1
-- Reference: HTA critical_path_analysis
-- Needs: host operators
CREATE OR REPLACE MACRO critical_path_edges_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Substring of the name of the host events that span the window, such as ProfilerStep; NULL or empty means the
    -- whole trace.
    annotation VARCHAR := NULL,
    -- Index of the event that starts the window, among the events that match annotation in time order, from 0.
    first_instance BIGINT := 0,
    -- Index of the event that ends the window; NULL means the event that starts it.
    last_instance BIGINT := NULL,
    -- Substrings of the names of annotations and Python frames that load data; they become nodes. NULL means none.
    data_load_names VARCHAR[] := NULL,
    -- Whether every device operation depends on its launch, with weight 0, even without a delay edge, through a
    -- kernel_launch_delay; what-if analyses need this dependency.
    include_launch_edges BOOLEAN := false,
    -- Whether to infer waits that are not recorded. A call is assumed to wait for the operation that ended last during
    -- the call, and a stream for the last operation of another stream that ended before its next operation started.
    -- Only operations launched before the wait count.
    infer_syncs BOOLEAN := true
) AS TABLE
-- Columns:
--   run             VARCHAR      Run name.
--   rank            INTEGER      Rank of the process.
--   begin_node_id   BIGINT       Node that must complete first; nodes of a rank are numbered from 0 in time order.
--   end_node_id     BIGINT       Node that depends on it.
--   edge_type       VARCHAR      Type of the edge: operator, dependency, kernel_launch_delay, kernel_kernel_delay or sync_dependency.
--   weight_ns       BIGINT [ns]  Duration of the edge.
--   begin_event_id  BIGINT       event_id of the event whose start or end is the first node.
--   end_event_id    BIGINT       event_id of the event whose start or end is the second node.
--   event_id        BIGINT       event_id of the event that the duration belongs to; NULL for launch delays and dependencies.
--   bound_by        VARCHAR      Resource that limits the edge: cpu_bound, data_loading, gpu_compute_bound, gpu_communication_bound, gpu_kernel_kernel_overhead, gpu_kernel_launch_overhead or unrecorded; NULL for dependencies.
SELECT e.*
FROM lib.critical_path_edges(
    runs, ranks, steps, include_last_profiler_step, annotation, first_instance, last_instance, data_load_names,
    include_launch_edges, infer_syncs
) AS e
ORDER BY e.run, e.rank, e.begin_node_id, e.end_node_id, e.edge_type
