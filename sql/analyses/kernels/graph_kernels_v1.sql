-- Kernels inside CUDA graphs: the replay cost of each graph node and the source line that captured it.
--
-- A replay is a single launch of many kernels, so no operator encloses the individual kernels. To record which code
-- launched them during capture, use torch.cuda.graph(…, enable_annotations=True,
-- annotation_config={"record_py_stacks": True}) and then torch.cuda.graph_annotations.dump_kernel_py_stacks(FILE),
-- with the default key_by="exec". Pass the content of the file as launch_stacks (on the command line, @FILE). Without
-- the file, and for nodes that the file does not list, the source line is unknown. Some recorders prefix the node id
-- with the graph id; both forms are recognized by their size. If the trace was ingested with the capture of its
-- graphs, the capture provides the operator, module and line of each node, and identifies the nodes if the trace has
-- no node ids. Work outside graphs has no rows.
--
-- Title: Kernels inside CUDA graphs
-- Shown: rank, sum_ns, graph_pct, name, graph_region, frame, mean_ns, run_count, graph_id
-- Status: stable
-- Since: 0.1
-- Reference: torch.cuda.graph_annotations
-- Needs: GPU activity with ids of graph nodes (CUDA 12), or the capture of the graphs
-- Report: at most 64 ranks
-- Chart:
--   mark = "bars"
--   title = "Time in CUDA graphs"
--   notes = [
--     "Sum over all ranks, by the source line that launched the operation during capture, or by its name if the line is unknown.",
--   ]
--   top = 20
--   name = "frame or name"
--   value = "sum_ns"
--   measure = "Time of all replays"
--   legend = "Class"
--   part = "class"
--   parts.computation = "computation"
--   parts.communication = "communication"
--   parts.memory = "memory"
--   tooltip.run_count = "Runs"
CREATE OR REPLACE MACRO graph_kernels_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Content (JSON) of the file written by dump_kernel_py_stacks; NULL: none. The ids in the file belong to one
    -- process, so select the rank of this process.
    launch_stacks VARCHAR := NULL
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   graph_id       BIGINT          Id of the CUDA graph; NULL if not recorded.
--   graph_node_id  BIGINT          Node of the graph; NULL if not recorded.
--   graph_number   BIGINT [1]      Number of the graph in its capture, as in graph_matches; this column and the following columns, up to module_path, are NULL without a capture.
--   node_number    BIGINT [1]      Position of the launch in the captured graph.
--   match_method   VARCHAR         How the operation was matched to the capture, as in graph_matches.
--   operator       VARCHAR         Operator that launched the operation during capture, without overload.
--   module_path    VARCHAR         nn.Modules around the launch, outermost first, separated by /.
--   kind           VARCHAR         Kind of operation: kernel, memcpy or memset.
--   class          VARCHAR         Class of the operation: computation, communication or memory.
--   name           VARCHAR         Kernel name.
--   graph_region   VARCHAR         Name of the region in which the node was captured (mark_kernels of PyTorch 2.14); NULL if not recorded.
--   frame          VARCHAR         Innermost frame that launched the kernel during capture, as file(line): function; NULL if unknown.
--   stack          VARCHAR         All frames as JSON, innermost first; NULL if unknown.
--   run_count      BIGINT [count]  Number of executions.
--   sum_ns         BIGINT [ns]     Total duration.
--   mean_ns        DOUBLE [ns]     Mean duration.
--   min_ns         BIGINT [ns]     Shortest duration.
--   max_ns         BIGINT [ns]     Longest duration.
--   graph_pct      DOUBLE [%]      Share of the total duration of the rank's operations inside graphs; NULL if the total is 0.
WITH
    told AS (
        SELECT unnest(map_entries(launch_stacks::JSON::MAP(VARCHAR, VARCHAR))) AS entry
    ),
    split AS (
        SELECT t.entry.key::UBIGINT AS tools_id, string_split(t.entry.value, chr(10)) AS lines
        FROM told AS t
    ),
    told_lines AS (
        SELECT p.tools_id, unnest(p.lines) AS line, generate_subscripts(p.lines, 1) AS position
        FROM split AS p
    ),
    frames AS (
        SELECT l.tools_id, l.position, regexp_replace(l.line, '(.*):(\d+):', '\1(\2): ') AS frame
        FROM told_lines AS l
        WHERE l.line <> ''
    ),
    stacked AS (
        SELECT f.tools_id, arg_min(f.frame, f.position) AS frame, to_json(list(f.frame ORDER BY f.position))::VARCHAR AS stack
        FROM frames AS f
        GROUP BY f.tools_id
    ),
    nodes AS (
        SELECT
            g.run, g.rank, g.kind, g.class, g.name, g.dur, m.graph_number::BIGINT AS graph_number, m.node_number::BIGINT AS node_number,
            m.match_method, lib.op_base_name(m.captured_op_name) AS operator, m.module_path, m.captured_frame,
            coalesce(nullif(g.graph_node_id >> 32, 0), g.graph_id) AS graph_id,
            nullif(g.graph_node_id, 0) & 4294967295 AS graph_node_id,
            g.graph_region
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        LEFT JOIN graph_matches AS m ON m.run = g.run AND m.rank = g.rank AND m.event_id = g.event_id
        WHERE g.graph_node_id > 0 OR m.match_method IS NOT NULL
    ),
    summed AS (
        SELECT
            n.run, n.rank, n.graph_id, n.graph_node_id, n.graph_number, n.node_number, n.match_method, n.operator, n.module_path,
            n.captured_frame, n.graph_region, n.kind, n.class, n.name,
            count(*) AS run_count, sum(n.dur)::BIGINT AS sum_ns, avg(n.dur) AS mean_ns, min(n.dur) AS min_ns, max(n.dur) AS max_ns
        FROM nodes AS n
        GROUP BY ALL
    )
SELECT
    s.run,
    s.rank,
    s.graph_id,
    s.graph_node_id,
    s.graph_number,
    s.node_number,
    s.match_method,
    s.operator,
    s.module_path,
    s.kind,
    s.class,
    s.name,
    s.graph_region,
    coalesce(k.frame, s.captured_frame) AS frame,
    k.stack,
    s.run_count,
    s.sum_ns,
    s.mean_ns,
    s.min_ns,
    s.max_ns,
    100 * (s.sum_ns / nullif(sum(s.sum_ns) OVER (PARTITION BY s.run, s.rank), 0)) AS graph_pct
FROM summed AS s
LEFT JOIN stacked AS k ON k.tools_id = (s.graph_id << 32) | s.graph_node_id
ORDER BY s.run, s.rank, s.sum_ns DESC, s.graph_id, s.graph_node_id, s.graph_number, s.node_number, s.name, s.kind, s.operator, s.module_path, s.match_method, frame
