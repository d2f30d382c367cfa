-- Device activity that no operator launched, labelled with the operator of its capture, as a graph replay or as
-- [no operator].
--
-- A replay is a single call that starts many kernels. The operators that put the kernels into the graph ran during its
-- capture, and are known if the trace was ingested with the capture (graph_matches). A replay launched by an operator
-- belongs to the operator. Kernels without a launch in the trace have no operator.
CREATE OR REPLACE MACRO lib.unowned_gpu_ops(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run              VARCHAR  Run name.
--   rank             INTEGER  Rank of the process.
--   event_id         BIGINT   Position of the event in traceEvents.
--   label            VARCHAR  Operator of the capture without its overload, [graph replay] or [no operator].
--   match_method     VARCHAR  How the operator of the capture was found, as in graph_matches; NULL without such an operator.
--   captured_op_id   BIGINT   event_id of that operator in its capture; together with the launch, it distinguishes calls.
--   input_dims       VARCHAR  Input shapes of that operator as JSON.
--   input_types      VARCHAR  Input types of that operator as JSON.
--   concrete_inputs  VARCHAR  Scalar arguments of that operator as JSON.
--   module_path      VARCHAR  nn.Modules around the launch, outermost first, separated by /.
--   captured_frame   VARCHAR  file(line): function that launched the operation.
WITH
    _replays AS (
        SELECT c.run, c.rank, c.event_id
        FROM runtime_calls AS c
        WHERE contains(c.name, 'GraphLaunch') AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    )
SELECT
    g.run AS run, g.rank AS rank, g.event_id AS event_id,
    CASE
        WHEN m.captured_op_name IS NOT NULL THEN lib.op_base_name(m.captured_op_name)
        WHEN r.run IS NOT NULL OR g.graph_id > 0 OR g.graph_node_id > 0 THEN '[graph replay]'
        ELSE '[no operator]'
    END AS label,
    CASE WHEN m.captured_op_name IS NOT NULL THEN m.match_method END AS match_method,
    m.captured_op_id AS captured_op_id, m.input_dims AS input_dims, m.input_types AS input_types, m.concrete_inputs AS concrete_inputs,
    m.module_path AS module_path, m.captured_frame AS captured_frame
FROM gpu_ops AS g
LEFT JOIN graph_matches AS m ON m.run = g.run AND m.rank = g.rank AND m.event_id = g.event_id
LEFT JOIN _replays AS r ON r.run = g.run AND r.rank = g.rank AND r.event_id = g.launch_id
WHERE g.op_id IS NULL AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
