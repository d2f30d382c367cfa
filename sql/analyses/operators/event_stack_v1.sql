-- Callers and callees of selected events: the chain from a kernel up to the outermost Python frame, or everything
-- below an operator.
--
-- Depths, and the attachment of backward threads, are as in call_stack. Events outside any call tree, such as kernels
-- whose launch is not in the trace, have no rows.
--
-- Title: Callers and callees of an event
-- Shown: depth, relation, name, dur, ts, table_name, event_id
-- Status: stable
-- Since: 0.1
-- Reference: HTA CallGraph.get_stack_of_node
-- Needs: host operators, runtime calls, annotations or Python calls
CREATE OR REPLACE MACRO event_stack_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps of the selected events; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Selected events by event_id; NULL means the longest device operation of each rank.
    event_ids BIGINT[] := NULL,
    -- Whether to include callers.
    include_ancestors BOOLEAN := true,
    -- Whether to include callees.
    include_descendants BOOLEAN := false,
    -- Whether to attach autograd threads below the main thread.
    joins_backward BOOLEAN := true
) AS TABLE
-- Columns:
--   run              VARCHAR      Run name.
--   rank             INTEGER      Rank of the process.
--   chosen_event_id  BIGINT       event_id of the selected event.
--   relation         VARCHAR      Relation to the selected event: ancestor, chosen or descendant.
--   depth            INTEGER [1]  Number of events above; 0 at the top.
--   event_id         BIGINT       Position of the event in traceEvents.
--   table_name       VARCHAR      Table with the event's other columns.
--   name             VARCHAR      Name of the event.
--   pid              BIGINT       Process id, or device.
--   tid              BIGINT       Thread id, or stream.
--   ts               BIGINT [ns]  Start, relative to the run's first event.
--   dur              BIGINT [ns]  Duration.
--   step             BIGINT       Profiler step; NULL outside steps.
--   parent_id        BIGINT       event_id of the parent event; NULL at the top.
WITH
    tree AS (
        SELECT t.*
        FROM lib.call_tree(runs, ranks, include_last_profiler_step, joins_backward) AS t
    ),
    chosen AS (
        SELECT t.run, t.rank, t.tree_id, t.event_id, t.position, t.next_position
        FROM tree AS t
        WHERE
            lib.is_requested(steps, t.step)
            AND CASE WHEN event_ids IS NULL THEN t.table_name = 'gpu_ops' ELSE list_contains(event_ids, t.event_id) END
        QUALIFY
            event_ids IS NOT NULL
            OR row_number() OVER (PARTITION BY t.run, t.rank ORDER BY t.dur DESC, t.ts, t.event_id) = 1
    )
SELECT
    c.run,
    c.rank,
    c.event_id AS chosen_event_id,
    CASE WHEN t.position < c.position THEN 'ancestor' WHEN t.position = c.position THEN 'chosen' ELSE 'descendant' END AS relation,
    t.depth,
    t.event_id,
    t.table_name,
    t.name,
    t.pid,
    t.tid,
    t.ts,
    t.dur,
    t.step,
    t.parent_id
FROM chosen AS c
JOIN tree AS t ON t.run = c.run AND t.rank = c.rank AND t.tree_id = c.tree_id AND t.position < c.next_position AND t.next_position > c.position
WHERE
    t.position = c.position
    OR (include_ancestors AND t.position < c.position)
    OR (include_descendants AND t.position > c.position)
ORDER BY c.position, t.position
