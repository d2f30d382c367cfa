-- Device operations of graph replays, joined with the captured launch that put each operation into its graph.
--
-- A replay is one call that starts many operations, so the trace does not show the operator of each operation. The
-- operators ran when the graph was captured, in a separate trace (hta-sql ingest --captures). Operations without a
-- matching capture have no row.
CREATE OR REPLACE VIEW graph_matches AS
-- Columns:
--   run               VARCHAR          Run: one capture of one job.
--   rank              INTEGER          Rank of the process.
--   event_id          BIGINT           event_id of the device operation in gpu_ops.
--   match_method      VARCHAR          position: replay and graph have the same list of names; occurrence: the same names in a different order; alignment: names are missing or differ; count: the capture has no names, but the same number of launches.
--   source            VARCHAR          Trace with the capture.
--   graph_number      INTEGER [1]      Number of the graph in that trace, from 0 in capture order.
--   node_number       INTEGER [1]      Position of the launch in the graph, from 0.
--   graph_label       VARCHAR          Annotation around the capture, such as capture_8192_PIECEWISE; NULL if there is none.
--   graph_tokens      BIGINT [tokens]  Number of tokens for which the graph was captured, as stated in graph_label; NULL if not stated.
--   captured_op_id    BIGINT           event_id of the operator in the capture, which distinguishes calls to the same operator; NULL if launched outside operators.
--   captured_op_name  VARCHAR          Innermost operator around the launch, as captured.
--   input_dims        VARCHAR          Input shapes of the captured operator as JSON.
--   input_types       VARCHAR          Input types of the captured operator as JSON.
--   concrete_inputs   VARCHAR          Scalar arguments of the captured operator as JSON.
--   module_path       VARCHAR          nn.Modules around the launch, outermost first, separated by /.
--   captured_frame    VARCHAR          Innermost Python frame around the launch that is not framework code, as file(line): function; NULL if unknown.
--   span              INTEGER          Recording of the rank; 0 if there is only one (see rank_spans).
SELECT x.*
FROM stored.graph_matches AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
