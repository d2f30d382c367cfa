-- Nodes of the critical path: start and end of each host operator, call and device operation of a window.
--
-- A node is a point in time. Numbers are a topological order: every edge of critical_path_edges leads
-- from a lower to a higher one, also where many things happen at one instant. The window is everything,
-- or reaches from the start of one event to the end of another, chosen by name and number; what starts
-- in it on the host belongs to it, and what that launches on the device. A device operation without a
-- launch in the window has no node. Events that last no time have two nodes at one instant. Device operations
-- stand on the clock of the host: where the device's differs (rank_health: device_skew_ns), its skew is taken off,
-- and none starts before its launch.
--
-- Title: Nodes of the critical path
-- Status: stable
-- Since: 0.1
-- Reference: HTA critical_path_analysis
-- Needs: host operators
CREATE OR REPLACE MACRO critical_path_nodes_v1(
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
    data_load_names VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   run          VARCHAR          Run name.
--   rank         INTEGER          Rank of the process.
--   node_id      BIGINT           Number of the node in its rank, from 0, in order of time.
--   ts           BIGINT [ns]      When, on the clock of the host.
--   is_start     BOOLEAN          The start of the event, else its end.
--   event_id     BIGINT           Position of the event in traceEvents.
--   name         VARCHAR          Name of the event.
--   kind         VARCHAR          operator, call, data_load or gpu.
--   class        VARCHAR          Class of a device operation.
--   event_ts     BIGINT [ns]      Start of the event, likewise.
--   dur          BIGINT [ns]      Duration of the event.
--   pid          BIGINT           Process of a host event.
--   tid          BIGINT           Thread of a host event.
--   parent_id    BIGINT           The nearest event that encloses a host event.
--   device       BIGINT           Device of a device operation.
--   stream       BIGINT           Stream of a device operation.
--   launch_id    BIGINT           The call that launched a device operation.
--   is_blocking  BOOLEAN          Whether the call waits for the device.
--   takes_lock   BOOLEAN          A call that launches, or allocates pinned memory: one at a time.
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
