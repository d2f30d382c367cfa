-- Innermost frame of the user's own code around events: one row per stack that has such a frame.
--
-- Frames of PyTorch, of function wrappers, and of the modules of Python's standard library that wait, or that read and
-- write files, are not the user's own.
CREATE OR REPLACE MACRO lib.user_lines(
    -- Name of a relation with run and rank: the ranks to include.
    rank_rows
) AS TABLE
-- Columns:
--   run              VARCHAR  Run name.
--   rank             INTEGER  Rank of the process.
--   stack_id         BIGINT   Row of stacks.
--   parent_stack_id  BIGINT   stack_id of the stack without the last name.
--   line             VARCHAR  Frame of the user's code: the last name of the stack or the closest one above it; NULL if there is none.
--   is_other         BOOLEAN  Whether no operator, data loader or optimizer is in the stack.
WITH RECURSIVE
    _stacks AS MATERIALIZED (
        SELECT
            s.run, s.rank, s.stack_id, s.parent_stack_id,
            CASE WHEN
                s.kind = 'frame'
                AND NOT regexp_matches(
                    s.name,
                    '^<|^Python GC$|(^|/)torch/.*\(\d+\): |(^|/)(contextlib|functools|threading|queue|selectors|socket|ssl|subprocess|shutil|pathlib|pickle|copyreg|zipfile|gzip|tempfile'
                    || '|typing|logging/\w+|asyncio/\w+|concurrent/futures/\w+|multiprocessing/\w+|http/\w+|urllib/\w+)\.py\(|: _?(wrapper|wrapped|decorated|decorate_context)$|torchinductor_'
                ) THEN lib.frame_name(s.name)
            END AS line,
            s.kind <> 'operator' AND NOT (s.kind = 'annotation' AND (lib.loads_data(s.name) OR starts_with(s.name, 'Optimizer.'))) AS is_other
        FROM stacks AS s
        SEMI JOIN query_table(rank_rows) AS r ON r.run = s.run AND r.rank = s.rank
    ),
    -- Level by level over few rows, because stacks are distinct.
    _lines(run, rank, stack_id, parent_stack_id, line, is_other) AS (
        SELECT s.run, s.rank, s.stack_id, s.parent_stack_id, s.line, s.is_other
        FROM _stacks AS s
        WHERE s.parent_stack_id IS NULL
        UNION ALL
        SELECT s.run, s.rank, s.stack_id, s.parent_stack_id, coalesce(s.line, l.line), l.is_other AND s.is_other
        FROM _lines AS l
        JOIN _stacks AS s ON s.run = l.run AND s.rank = l.rank AND s.parent_stack_id = l.stack_id
    )
SELECT l.run, l.rank, l.stack_id, l.parent_stack_id, l.line, l.is_other
FROM _lines AS l
