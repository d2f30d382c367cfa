-- Lines of model code from which kernels were compiled, and the graph nodes that each kernel computes.
--
-- There are three sources: stacks in the event itself (inductor_trace_handler of PyTorch 2.14), which are exact for a
-- single launch; the table compiled_kernels by kernel name; and the same table by the name of the launching operator,
-- for library calls made by AOTInductor (aoti_torch_cuda_mm_out). Names are compared unchanged, so kernels with the
-- same name in several graphs get the lines of all these graphs. In each stack, the innermost frame outside PyTorch
-- is used.
CREATE OR REPLACE MACRO lib.kernel_source_frames(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run       VARCHAR      Run name.
--   rank      INTEGER      Rank of the process.
--   name      VARCHAR      Name of the kernel.
--   method    VARCHAR      event, kernel name or operator name.
--   priority  INTEGER [1]  Order of the methods, the most exact first.
--   file      VARCHAR      File of the line; NULL if the stack is unknown.
--   line      BIGINT [1]   Line in that file.
--   function  VARCHAR      Function that contains the line.
--   nodes     VARCHAR[]    Nodes of the compiled graph; NULL if unknown.
WITH
    _known AS MATERIALIZED (
        SELECT k.run, k.rank, k.name, k.post_grad_nodes, k.source_stacks
        FROM compiled_kernels AS k
        WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
        GROUP BY ALL
    ),
    _kernels AS MATERIALIZED (
        SELECT g.run, g.rank, g.name, g.source_stacks
        FROM gpu_ops AS g
        WHERE g.kind = 'kernel' AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
        GROUP BY ALL
    ),
    _launched AS (
        SELECT c.run, c.rank, g.name, c.name AS op_name
        FROM cpu_ops AS c
        SEMI JOIN _known AS k ON k.run = c.run AND k.rank = c.rank AND k.name = c.name
        JOIN gpu_ops AS g ON g.run = c.run AND g.rank = c.rank AND g.op_id = c.event_id
        WHERE g.kind = 'kernel' AND g.name <> c.name
        GROUP BY ALL
    ),
    _named AS (
        SELECT k.run, k.rank, k.name, 'event' AS method, 1 AS priority, k.source_stacks, NULL AS post_grad_nodes
        FROM _kernels AS k
        WHERE k.source_stacks IS NOT NULL
        UNION
        SELECT k.run, k.rank, k.name, 'kernel name', 2, o.source_stacks, o.post_grad_nodes
        FROM _kernels AS k
        JOIN _known AS o ON o.run = k.run AND o.rank = k.rank AND o.name = k.name
        UNION
        SELECT p.run, p.rank, p.name, 'operator name', 3, o.source_stacks, o.post_grad_nodes
        FROM _launched AS p
        JOIN _known AS o ON o.run = p.run AND o.rank = p.rank AND o.name = p.op_name
    ),
    _stacks AS (
        SELECT
            n.run, n.rank, n.name, n.method, n.priority, json_extract_string(n.post_grad_nodes, '$[*]') AS nodes,
            unnest(CASE WHEN n.source_stacks IS NULL THEN [NULL] ELSE json_extract_string(n.source_stacks, '$[*]') END) AS stack
        FROM _named AS n
    ),
    _texts AS (
        SELECT DISTINCT s.stack FROM _stacks AS s WHERE s.stack IS NOT NULL
    ),
    _frames AS (
        SELECT t.stack, list_zip(
            regexp_extract_all(t.stack, 'File "([^"\n]+)", line ([0-9]+)(?:, in ([^\n]*))?', 1),
            regexp_extract_all(t.stack, 'File "([^"\n]+)", line ([0-9]+)(?:, in ([^\n]*))?', 2),
            regexp_extract_all(t.stack, 'File "([^"\n]+)", line ([0-9]+)(?:, in ([^\n]*))?', 3)
        ) AS frames
        FROM _texts AS t
    ),
    _innermost AS (
        SELECT
            f.stack,
            coalesce(list_filter(f.frames, lambda x: NOT (contains(x[1], '/torch/') OR starts_with(x[1], 'torch/')))[-1], f.frames[-1]) AS frame
        FROM _frames AS f
    )
SELECT
    s.run, s.rank, s.name, s.method, s.priority, i.frame[1] AS file, TRY_CAST(i.frame[2] AS BIGINT) AS line,
    nullif(i.frame[3], '') AS function, s.nodes
FROM _stacks AS s
LEFT JOIN _innermost AS i ON i.stack = s.stack
GROUP BY ALL
