-- Nodes of the critical path graph: start and end of each host operator, call and device operation in a window.
--
-- A node is a point in time. Node numbers are a topological order: every edge of critical_path_edges leads from a lower
-- to a higher number, even among simultaneous events. The window is the whole trace, or reaches from the start of one
-- event to the end of the same or a later event, both selected by name and index. The window contains the host events
-- that start in it and the device operations that they launch. A device operation without a launch in the window has no
-- node. Events of zero duration have two nodes at the same time. Device operations are placed on the host clock. If the
-- device clock differs (rank_health: device_skew_ns), its skew is subtracted, and no operation starts before its
-- launch.
--
-- Title: Nodes of the critical path
-- Shown: rank, node_id, ts, is_start, name, kind, dur, stream
-- Status: stable
-- Since: 0.1
-- Reference: HTA critical_path_analysis
-- Needs: host operators
CREATE OR REPLACE MACRO critical_path_nodes_v1(
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
    data_load_names VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   run          VARCHAR          Run name.
--   rank         INTEGER          Rank of the process.
--   node_id      BIGINT           Node number within the rank, from 0, in time order.
--   ts           BIGINT [ns]      Time on the host clock.
--   is_start     BOOLEAN          Whether the node is the start of the event, otherwise its end.
--   event_id     BIGINT           Position of the event in traceEvents.
--   name         VARCHAR          Name of the event.
--   kind         VARCHAR          Kind of the event: operator, call, data_load or gpu.
--   class        VARCHAR          Class of a device operation.
--   event_ts     BIGINT [ns]      Start of the event on the host clock.
--   dur          BIGINT [ns]      Duration of the event.
--   pid          BIGINT           Process id of a host event.
--   tid          BIGINT           Thread id of a host event.
--   parent_id    BIGINT           event_id of the innermost event that encloses a host event.
--   device       BIGINT           Device of a device operation.
--   stream       BIGINT           Stream of a device operation.
--   launch_id    BIGINT           event_id of the call that launched the device operation.
--   is_blocking  BOOLEAN          Whether the call waits for the device.
--   takes_lock   BOOLEAN          Whether the call launches work or allocates pinned memory, which takes a lock shared by all threads.
SELECT
    n.run,
    n.rank,
    n.node_id,
    n.node_ts AS ts,
    n.is_start,
    n.event_id,
    n.name,
    n.kind,
    n.class,
    n.ts AS event_ts,
    n.dur,
    n.pid,
    n.tid,
    n.parent_id,
    n.device,
    n.stream,
    n.launch_id,
    n.is_blocking,
    n.takes_lock
FROM lib.critical_path_nodes(
    runs, ranks, steps, include_last_profiler_step, annotation, first_instance, last_instance, data_load_names
) AS n
ORDER BY n.run, n.rank, n.node_id
