-- Call tree of every host thread, with caller, depth, and the device activity launched below each event.
--
-- Rows are in depth-first order, thread by thread: the descendant_count rows after an event are its descendants
-- (unless steps are selected). Device activity is below the call that launched it; operations without a launch in the
-- trace have no row. Outermost events of autograd threads are attached below the enclosing "## backward ##" annotation
-- of the main thread, or below its profiler step if the trace has no such annotation. Kernel columns cover everything
-- below an event, in all included steps; a device operation counts itself.
--
-- Title: Call tree with device activity
-- Shown: rank, depth, name, dur, kernel_ns, kernel_count, step, ts
-- Status: stable
-- Since: 0.1
-- Reference: HTA CallGraph: parent, depth, height, num_kernels, kernel_dur_sum, kernel_span
-- Needs: host operators, runtime calls, annotations or Python calls
CREATE OR REPLACE MACRO call_stack_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether to attach autograd threads below the main thread.
    joins_backward BOOLEAN := true
) AS TABLE
-- Columns:
--   run                 VARCHAR         Run name.
--   rank                INTEGER         Rank of the process.
--   tree_id             BIGINT [1]      Number of the tree within the rank, from 1: a thread, or a main thread with its backward threads.
--   event_id            BIGINT          Position of the event in traceEvents.
--   table_name          VARCHAR         Table with the event's other columns.
--   name                VARCHAR         Name of the event.
--   label               VARCHAR         Role of the thread: main (has the profiler steps), backward (autograd) or other.
--   pid                 BIGINT          Process id, or device.
--   tid                 BIGINT          Thread id, or stream.
--   ts                  BIGINT [ns]     Start, relative to the run's first event.
--   dur                 BIGINT [ns]     Duration.
--   step                BIGINT          Profiler step; NULL outside steps.
--   parent_id           BIGINT          event_id of the parent event; NULL at the top.
--   depth               INTEGER [1]     Number of events above; 0 at the top.
--   height              INTEGER [1]     Length of the longest path down: 0 for device activity, 1 for a host event with no host event below.
--   descendant_count    BIGINT [count]  Number of events below, including device activity.
--   kernel_count        BIGINT [count]  Number of device operations below.
--   kernel_ns           BIGINT [ns]     Total duration of these operations; 0 if there are none.
--   first_kernel_ts     BIGINT [ns]     Start of the first of these operations.
--   last_kernel_end_ts  BIGINT [ns]     End of the last of these operations.
--   kernel_span_ns      BIGINT [ns]     Time from first_kernel_ts to last_kernel_end_ts.
WITH
    tree AS (
        SELECT t.*, t.table_name = 'gpu_ops' AS on_gpu, t.next_position - t.position - 1 AS descendants
        FROM lib.call_tree(runs, ranks, include_last_profiler_step, joins_backward) AS t
    ),
    below AS (
        SELECT
            t.*,
            max(t.depth + CASE WHEN t.on_gpu THEN 0 ELSE 1 END) OVER subtree - t.depth AS height,
            coalesce(sum(CASE WHEN t.on_gpu THEN 1 END) OVER subtree, 0)::BIGINT AS kernel_count,
            coalesce(sum(CASE WHEN t.on_gpu THEN t.dur END) OVER subtree, 0)::BIGINT AS kernel_ns,
            min(CASE WHEN t.on_gpu THEN t.ts END) OVER subtree AS first_kernel_ts,
            max(CASE WHEN t.on_gpu THEN t.ts + t.dur END) OVER subtree AS last_kernel_end_ts
        FROM tree AS t
        WINDOW subtree AS (PARTITION BY t.tree_id ORDER BY t.position ROWS BETWEEN CURRENT ROW AND t.descendants FOLLOWING)
    )
SELECT
    b.run,
    b.rank,
    b.tree_id,
    b.event_id,
    b.table_name,
    b.name,
    b.label,
    b.pid,
    b.tid,
    b.ts,
    b.dur,
    b.step,
    b.parent_id,
    b.depth,
    b.height,
    b.descendants AS descendant_count,
    b.kernel_count,
    b.kernel_ns,
    b.first_kernel_ts,
    b.last_kernel_end_ts,
    b.last_kernel_end_ts - b.first_kernel_ts AS kernel_span_ns
FROM below AS b
WHERE lib.is_requested(steps, b.step)
ORDER BY b.position
