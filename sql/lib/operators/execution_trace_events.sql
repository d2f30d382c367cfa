-- Nodes of execution traces, each with its event in the trace of the same rank, or the reason why there is none.
--
-- A node belongs to the event with the same record function id and name. Traces contain the id as "Record function
-- id"; older traces contain only "External id", which may be numbered differently. Nodes of a different run are also
-- numbered differently. If fewer than half of the nodes whose id is in the trace have the same name as the event with
-- that id, equal names are a coincidence, and no node is joined by its id. Instead, lib._ordered_nodes joins the
-- nodes, if autograd's sequence numbers show where they begin.
CREATE OR REPLACE MACRO lib.execution_trace_events(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run             VARCHAR  Run name.
--   rank            INTEGER  Rank of the process.
--   node_id         BIGINT   Node, in et_nodes.
--   parent_node_id  BIGINT   node_id of the node that called this node.
--   name            VARCHAR  Name of the operator or annotation.
--   event_id        BIGINT   event_id of the event in the trace; NULL if the node is not joined.
--   outcome         VARCHAR  joined; process or thread (no call); no trace; no event with its id; event with its id has another name; ids of another numbering; event at its position has another name.
--   match_method    VARCHAR  id, or order (position on the thread, determined from autograd's sequence numbers); NULL if the node is not joined.
WITH
    _host AS MATERIALIZED (
        SELECT c.run, c.rank, c.event_id, c.ts, c.name, coalesce(nullif(c.record_function_id, 0), c.external_id) AS id
        FROM cpu_ops AS c
        WHERE lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        UNION ALL
        SELECT a.run, a.rank, a.event_id, a.ts, a.name, coalesce(nullif(a.record_function_id, 0), a.external_id)
        FROM annotations AS a
        WHERE NOT a.on_gpu AND lib.is_requested(runs, a.run) AND lib.is_requested(ranks, a.rank)
    ),
    _called AS (
        SELECT n.run, n.rank, n.node_id, n.parent_node_id, n.name, n.record_function_id
        FROM et_nodes AS n
        WHERE lib.is_requested(runs, n.run) AND lib.is_requested(ranks, n.rank)
    ),
    _found AS MATERIALIZED (
        SELECT
            n.run, n.rank, n.node_id, n.parent_node_id, n.name, n.record_function_id,
            count(h.event_id) AS event_count,
            arg_min(h.event_id, (h.ts, h.event_id)) FILTER (h.name = n.name) AS event_id
        FROM _called AS n
        LEFT JOIN _host AS h ON h.run = n.run AND h.rank = n.rank AND h.id = n.record_function_id AND h.id > 0
        GROUP BY ALL
    ),
    _numbered AS MATERIALIZED (
        SELECT f.run, f.rank, 2 * count(f.event_id) >= count(*) AS is_shared
        FROM _found AS f
        WHERE f.event_count > 0
        GROUP BY f.run, f.rank
    ),
    _traced AS (
        SELECT DISTINCT h.run, h.rank FROM _host AS h
    ),
    _ordered AS MATERIALIZED (
        SELECT o.run, o.rank, o.node_id, o.event_id
        FROM lib._ordered_nodes(runs, ranks) AS o
        ANTI JOIN (SELECT n.run, n.rank FROM _numbered AS n WHERE n.is_shared) AS s ON s.run = o.run AND s.rank = o.rank
    )
SELECT
    f.run,
    f.rank,
    f.node_id,
    f.parent_node_id,
    f.name,
    CASE WHEN s.is_shared THEN f.event_id ELSE o.event_id END AS event_id,
    CASE
        WHEN coalesce(f.record_function_id, 0) <= 0 THEN 'process or thread'
        WHEN t.run IS NULL THEN 'no trace'
        WHEN o.event_id IS NOT NULL THEN 'joined'
        WHEN o.node_id IS NOT NULL THEN 'event at its position has another name'
        WHEN f.event_count = 0 THEN 'no event with its id'
        WHEN NOT s.is_shared THEN 'ids of another numbering'
        WHEN f.event_id IS NULL THEN 'event with its id has another name'
        ELSE 'joined'
    END AS outcome,
    CASE WHEN o.event_id IS NOT NULL THEN 'order' WHEN s.is_shared AND f.event_id IS NOT NULL AND f.record_function_id > 0 THEN 'id' END AS match_method
FROM _found AS f
LEFT JOIN _numbered AS s ON s.run = f.run AND s.rank = f.rank
LEFT JOIN _traced AS t ON t.run = f.run AND t.rank = f.rank
LEFT JOIN _ordered AS o ON o.run = f.run AND o.rank = f.rank AND o.node_id = f.node_id
