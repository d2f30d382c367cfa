-- Producer of each tensor that a node of an execution trace consumes, one row per input tensor.
--
-- The producer is the last node that has the tensor among its outputs and precedes the consumer. Callers of the
-- consumer do not count, because they end after the consumer. If nested operators return the same tensor, the producer
-- is the innermost operator, and producer_call is the outermost operator. An in-place operator counts as a producer of
-- the tensor that it modifies. A tensor without a producer is a parameter, a batch, or a tensor created before the
-- execution trace began.
--
-- Title: Producers of tensors
-- Shown: rank, name, producer_name, bytes, tensor_position, producer_call, device, node_id
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; nodes have no steps of their own
-- Reference: none
-- Needs: execution traces (torch.profiler.ExecutionTraceObserver)
CREATE OR REPLACE MACRO execution_trace_producers_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Name of the consumers to include, such as aten::addmm; NULL means all.
    consumer VARCHAR := NULL
) AS TABLE
-- Columns:
--   run                VARCHAR         Run name.
--   rank               INTEGER         Rank of the process.
--   node_id            BIGINT          node_id of the consumer, in et_nodes.
--   name               VARCHAR         Name of the consumer.
--   event_id           BIGINT          event_id of the consumer in the trace; NULL if the consumer is not joined.
--   tensor_position    BIGINT [1]      Position among the consumer's input tensors, from 0.
--   tensor_id          BIGINT          Number of the tensor in the execution trace.
--   storage_id         BIGINT          Number of the tensor's storage, which its views share.
--   bytes              BIGINT [bytes]  Total size of the tensor's elements.
--   device             VARCHAR         Device, such as cuda:0.
--   producer_node_id   BIGINT          node_id of the producer, in et_nodes; NULL if there is none.
--   producer_name      VARCHAR         Name of the producer.
--   producer_event_id  BIGINT          event_id of the producer in the trace; NULL if the producer is not joined.
--   producer_call      VARCHAR         Name of the outermost operator that encloses the producer and returned the tensor before the consumer started; producer_name if there is none.
WITH RECURSIVE
    nodes AS MATERIALIZED (
        FROM lib.execution_trace_events(runs, ranks)
    ),
    callers(run, rank, node_id, caller_id) AS (
        SELECT n.run, n.rank, n.node_id, n.parent_node_id
        FROM nodes AS n
        WHERE n.parent_node_id < n.node_id
        UNION ALL
        SELECT c.run, c.rank, c.node_id, n.parent_node_id
        FROM callers AS c
        JOIN nodes AS n ON n.run = c.run AND n.rank = c.rank AND n.node_id = c.caller_id
        WHERE n.parent_node_id < n.node_id
    ),
    consumed AS MATERIALIZED (
        SELECT t.*
        FROM et_tensors AS t
        JOIN nodes AS n ON n.run = t.run AND n.rank = t.rank AND n.node_id = t.node_id
        WHERE NOT t.is_output AND (consumer IS NULL OR n.name = consumer)
    ),
    produced AS (
        SELECT DISTINCT t.run, t.rank, t.node_id, t.tensor_id
        FROM et_tensors AS t
        WHERE t.is_output AND lib.is_requested(runs, t.run) AND lib.is_requested(ranks, t.rank)
    ),
    producers AS (
        SELECT c.run, c.rank, c.node_id, c.tensor_position, max(p.node_id) AS producer_id
        FROM consumed AS c
        JOIN produced AS p ON p.run = c.run AND p.rank = c.rank AND p.tensor_id = c.tensor_id AND p.node_id < c.node_id
        WHERE NOT EXISTS (
            SELECT 1 FROM callers AS a WHERE a.run = c.run AND a.rank = c.rank AND a.node_id = c.node_id AND a.caller_id = p.node_id
        )
        GROUP BY c.run, c.rank, c.node_id, c.tensor_position
    ),
    calls AS (
        SELECT c.run, c.rank, c.node_id, c.tensor_position, min(a.caller_id) AS call_id
        FROM producers AS c
        JOIN consumed AS t ON t.run = c.run AND t.rank = c.rank AND t.node_id = c.node_id AND t.tensor_position = c.tensor_position
        JOIN callers AS a ON a.run = c.run AND a.rank = c.rank AND a.node_id = c.producer_id
        JOIN produced AS p ON p.run = c.run AND p.rank = c.rank AND p.node_id = a.caller_id AND p.tensor_id = t.tensor_id
        WHERE NOT EXISTS (
            SELECT 1 FROM callers AS o WHERE o.run = c.run AND o.rank = c.rank AND o.node_id = c.node_id AND o.caller_id = a.caller_id
        )
        GROUP BY c.run, c.rank, c.node_id, c.tensor_position
    )
SELECT
    c.run,
    c.rank,
    c.node_id,
    n.name,
    n.event_id,
    c.tensor_position,
    c.tensor_id,
    c.storage_id,
    TRY_CAST(c.element_count::HUGEINT * c.element_bytes AS BIGINT) AS bytes,
    c.device,
    p.producer_id AS producer_node_id,
    m.name AS producer_name,
    m.event_id AS producer_event_id,
    coalesce(o.name, m.name) AS producer_call
FROM consumed AS c
JOIN nodes AS n ON n.run = c.run AND n.rank = c.rank AND n.node_id = c.node_id
LEFT JOIN producers AS p ON p.run = c.run AND p.rank = c.rank AND p.node_id = c.node_id AND p.tensor_position = c.tensor_position
LEFT JOIN nodes AS m ON m.run = p.run AND m.rank = p.rank AND m.node_id = p.producer_id
LEFT JOIN calls AS l ON l.run = c.run AND l.rank = c.rank AND l.node_id = c.node_id AND l.tensor_position = c.tensor_position
LEFT JOIN nodes AS o ON o.run = l.run AND o.rank = l.rank AND o.node_id = l.call_id
ORDER BY c.run, c.rank, c.node_id, c.tensor_position
