-- Stacks of memory snapshots as strings, with the category of the memory that they allocate.
--
-- The line of the user's program is the innermost frame outside PyTorch. The folded stack omits frames of the
-- interpreter and of PyTorch's dispatcher, as torch.cuda._memory_viz does.
CREATE OR REPLACE MACRO lib.snapshot_stack_texts(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run           VARCHAR  Run name.
--   rank          INTEGER  Rank of the process.
--   stack_id      BIGINT   Number of the stack in the snapshot.
--   category      VARCHAR  parameters, gradients, activations, optimizer, sharding, communication or unknown.
--   frame         VARCHAR  Line and function of the user's program, such as train.py:47 in step.
--   folded_stack  VARCHAR  Frames from the outermost, as file:line:function, separated by semicolons.
WITH
    _frames AS MATERIALIZED (
        SELECT f.run, f.rank, f.stack_id, f.depth, coalesce(f.name, '') AS name, coalesce(f.file, '') AS file, f.line
        FROM snapshot_frames AS f
        WHERE lib.is_requested(runs, f.run) AND lib.is_requested(ranks, f.rank)
    ),
    _places AS (
        SELECT DISTINCT f.name, f.file FROM _frames AS f
    ),
    _ruled AS MATERIALIZED (
        SELECT p.name, p.file, arg_min(c.category, c.priority) AS category
        FROM _places AS p
        LEFT JOIN snapshot_categories AS c ON regexp_matches(CASE c.part WHEN 'file' THEN p.file WHEN 'function' THEN p.name ELSE concat(p.file, ':', p.name) END, c.pattern)
        GROUP BY p.name, p.file
    ),
    _shown AS MATERIALIZED (
        SELECT
            p.name, p.file,
            NOT regexp_matches(p.name, 'unwind::unwind|CapturedTraceback::gather|gather_with_cpp|_start|__libc_start_main|PyEval_|PyObject_|PyFunction_')
            AND NOT regexp_matches(
                p.file,
                'core/boxing|/Register|/Redispatch|pythonrun\.c|Modules/main\.c|Objects/call\.c|Objects/methodobject\.c|pycore_ceval\.h|ceval\.c|cpython/abstract\.h'
            ) AS is_shown,
            regexp_matches(p.file, '(^|[/\\])(torch|torchgen)[/\\]|^<|^$|^\?\?|\.(c|cc|cpp|cu|h|hpp|so)(\.|$)|[/\\](threading|contextlib|functools)\.py$') AS is_library
        FROM _places AS p
    )
SELECT
    f.run,
    f.rank,
    f.stack_id,
    coalesce(arg_min(r.category, f.depth) FILTER (r.category IS NOT NULL), 'unknown') AS category,
    arg_min(concat(f.file, ':', f.line, ' in ', f.name), (s.is_library, f.depth)) AS frame,
    coalesce(string_agg(concat(split_part(f.file, '/', -1), ':', f.line, ':', f.name), ';' ORDER BY f.depth DESC) FILTER (s.is_shown), '') AS folded_stack
FROM _frames AS f
JOIN _ruled AS r ON r.name = f.name AND r.file = f.file
JOIN _shown AS s ON s.name = f.name AND s.file = f.file
GROUP BY f.run, f.rank, f.stack_id
