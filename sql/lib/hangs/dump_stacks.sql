-- Stacks of Flight Recorder dumps as text: the line of the user's program, and the whole stack.
--
-- The line of the user's program is the innermost frame outside PyTorch.
CREATE OR REPLACE MACRO lib.dump_stacks(
    runs
) AS TABLE
-- Columns:
--   run         VARCHAR  Run name.
--   rank        INTEGER  Rank of the dump.
--   stack_id    BIGINT   Number of the stack in the dump.
--   frame_text  VARCHAR  Line and function of the user's program, such as train.py:47 in step.
--   stack_text  VARCHAR  All frames, innermost first, one per line.
SELECT
    f.run,
    f.rank,
    f.stack_id,
    arg_min(
        concat(f.file, ':', f.line, ' in ', f.name),
        (regexp_matches(coalesce(f.file, ''), '(^|[/\\])(torch|torchgen)[/\\]|^<|[/\\](threading|contextlib|functools)\.py$'), f.depth)
    ) AS frame_text,
    string_agg(concat(f.file, ':', f.line, ' in ', f.name), chr(10) ORDER BY f.depth) AS stack_text
FROM fr_frames AS f
WHERE lib.is_requested(runs, f.run)
GROUP BY f.run, f.rank, f.stack_id
