-- Device operations of graph replays that are joined with a capture: the launch that put each into its graph.
--
-- A replay is one call that starts many operations, so no operator launches them. The operators ran when the graph was
-- captured, in a separate trace (hta-sql ingest --captures). Operations without a matching capture have no row.
CREATE OR REPLACE VIEW graph_matches AS
-- Columns:
--   run               VARCHAR          Run: one capture of one job.
--   rank              INTEGER          Rank of the process.
--   event_id          BIGINT           event_id of the device operation in gpu_ops.
--   span              INTEGER          Recording of the rank; 0 if there is only one (see rank_spans).
--   match_method      VARCHAR          position: replay and graph have the same list of names; occurrence: the same names in another order; alignment: names are missing or differ; count: the capture has no names, only as many launches.
--   source            VARCHAR          Trace with the capture.
--   graph_number      INTEGER [1]      Number of the graph in it, from 0 in the order of the captures.
--   node_number       INTEGER [1]      Position of the launch in the graph, from 0.
--   graph_label       VARCHAR          Annotation around the capture, such as capture_8192_PIECEWISE; NULL without one.
--   graph_tokens      BIGINT [tokens]  Tokens that the graph is captured for, from that annotation; NULL if not stated.
--   captured_op_id    BIGINT           event_id of the operator in the capture; distinguishes its calls. NULL: launched outside operators.
--   captured_op_name  VARCHAR          Innermost operator around the launch, as captured.
--   input_dims        VARCHAR          Its input shapes as JSON.
--   input_types       VARCHAR          Its input types as JSON.
--   concrete_inputs   VARCHAR          Its scalar arguments as JSON.
--   module_path       VARCHAR          nn.Modules around the launch, the outermost first, with / between them.
--   captured_frame    VARCHAR          file(line): function that launched it, the innermost outside of frameworks; NULL if none is known.
SELECT
    x.run,
    x.rank,
    x.event_id,
    x.span,
    x.match_method,
    x.source,
    x.graph_number,
    x.node_number,
    x.graph_label,
    x.graph_tokens,
    x.captured_op_id,
    x.captured_op_name,
    x.input_dims,
    x.input_types,
    x.concrete_inputs,
    x.module_path,
    x.captured_frame
FROM stored.graph_matches AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
