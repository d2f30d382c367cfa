-- Edges of the critical path: what had to happen before what, and how long that took.
--
-- operator: time inside a host operator or call, or of a device operation (of one that still runs when
-- the next on its stream starts: until then). dependency: order without
-- time, between outermost operators of a thread, between a thread and the one that runs its backward
-- pass, between overlapping launches of two threads. kernel_launch_delay: from the start of a call to
-- the operation that it launched, where the stream was idle by then. kernel_kernel_delay: else, from
-- the operation that had ended last on the stream. sync_dependency: from a device operation to the call
-- that waits for it, or to what follows a wait on another stream. The last stretch of a waiting call
-- has no time of its own: what it waits for has.
--
-- Records of synchronization tell who waits for whom. Most traces have none
-- (enable_cuda_sync_events=True); there waits are inferred, or with infer_syncs := false left out as
-- HTA does, so that no path leads from the device back to the host.
--
-- The longest path over these edges is the critical path: hta-sql critical-path, or
-- hta_sql.critical_path.
--
-- Title: Edges of the critical path
-- Status: stable
-- Since: 0.1
-- Reference: HTA critical_path_analysis
-- Needs: host operators
CREATE OR REPLACE MACRO critical_path_edges_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Text in the name of the host events that span the window, for example ProfilerStep; NULL or empty means everything.
    annotation VARCHAR := NULL,
    -- Number of the first of these events, in order of time, from 0.
    first_instance BIGINT := 0,
    -- Number of the last one; NULL means the first one alone.
    last_instance BIGINT := NULL,
    -- Texts in the names of annotations and Python frames that load data; they become nodes. NULL means none.
    data_load_names VARCHAR[] := NULL,
    -- Whether every device operation depends on its launch where no delay says so, at no time; what-if questions need it.
    include_launch_edges BOOLEAN := false,
    -- Whether waits without a record are told from what ended: for a call, the operation that ended last while it waited; for a stream, the last one of another stream that had ended when its next operation started. Of those launched before.
    infer_syncs BOOLEAN := true
) AS TABLE
-- Columns:
--   run             VARCHAR      Run name.
--   rank            INTEGER      Rank of the process.
--   begin_node_id   BIGINT       Node that must complete first.
--   end_node_id     BIGINT       Node that depends on it.
--   edge_type       VARCHAR      operator, dependency, kernel_launch_delay, kernel_kernel_delay or sync_dependency.
--   weight_ns       BIGINT [ns]  Duration of the edge.
--   begin_event_id  BIGINT       Event of the first node.
--   end_event_id    BIGINT       Event of the second node.
--   event_id        BIGINT       Event that the time belongs to; NULL for launch delays and dependencies.
--   bound_by        VARCHAR      cpu_bound, data_loading, gpu_compute_bound, gpu_communication_bound, gpu_kernel_kernel_overhead or gpu_kernel_launch_overhead; NULL for dependencies.
SELECT
    e.run,
    e.rank,
    e.begin_node_id,
    e.end_node_id,
    e.edge_type,
    e.weight_ns,
    e.begin_event_id,
    e.end_event_id,
    e.event_id,
    e.bound_by
FROM lib.critical_path_edges(
    runs, ranks, steps, include_last_profiler_step, annotation, first_instance, last_instance, data_load_names,
    include_launch_edges, infer_syncs
) AS e
ORDER BY e.run, e.rank, e.begin_node_id, e.end_node_id, e.edge_type
