-- Host threads of each rank, the size of their call trees, and the tree that each thread belongs to.
--
-- A thread with profiler steps is main; a thread with autograd's evaluate_function or other autograd:: operators is
-- backward. A backward thread has one row per tree that contains its events: the tree of the main thread, and possibly
-- its own. The thread has a tree of its own if some of its outermost events lie outside the annotations to which they
-- could be attached (see call_stack).
--
-- Title: Threads and their call trees
-- Shown: rank, label, event_count, kernel_count, max_depth, first_name, thread_id
-- Status: stable
-- Since: 0.1
-- Reference: HTA CallGraph.mapping
-- Needs: host operators, runtime calls, annotations or Python calls
CREATE OR REPLACE MACRO call_stack_threads_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether to attach autograd threads below the main thread.
    joins_backward BOOLEAN := true
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   tree_id          BIGINT [1]      Number of the tree within the rank, from 1: a thread, or a main thread with its backward threads.
--   thread_id        BIGINT [1]      Number of the thread within the rank, from 1.
--   pid              BIGINT          Process id; NULL if the trace has a string instead of a number.
--   tid              BIGINT          Thread id; NULL if the trace has a string instead of a number.
--   label            VARCHAR         Role of the thread: main, backward or other.
--   first_name       VARCHAR         Name of the thread's first event in this tree.
--   event_count      BIGINT [count]  Number of host events of the thread in this tree.
--   top_event_count  BIGINT [count]  Number of host events outside any other event of the thread.
--   max_depth        INTEGER [1]     Greatest depth in the tree.
--   kernel_count     BIGINT [count]  Number of device operations launched by the thread.
WITH
    tree AS (
        SELECT t.*
        FROM lib.call_tree(runs, ranks, include_last_profiler_step, joins_backward) AS t
        WHERE lib.is_requested(steps, t.step)
    ),
    host AS (
        SELECT
            t.run,
            t.rank,
            t.tree_id,
            t.thread_id,
            t.pid,
            t.tid,
            t.label,
            arg_min(t.name, t.position) AS first_name,
            count(*) AS event_count,
            count_if(t.is_top)::BIGINT AS top_event_count,
            max(t.depth) AS max_depth
        FROM tree AS t
        WHERE t.table_name <> 'gpu_ops'
        GROUP BY ALL
    ),
    device AS (
        SELECT t.run, t.rank, t.tree_id, t.thread_id, count(*) AS kernel_count
        FROM tree AS t
        WHERE t.table_name = 'gpu_ops'
        GROUP BY ALL
    )
SELECT
    h.*,
    coalesce(d.kernel_count, 0) AS kernel_count
FROM host AS h
LEFT JOIN device AS d ON d.run = h.run AND d.rank = h.rank AND d.tree_id = h.tree_id AND d.thread_id = h.thread_id
ORDER BY h.run, h.rank, h.tree_id, h.thread_id
