-- Chains of names on host threads, from an outermost event down: each that occurs, once a rank.
--
-- Events whose stack_id is the same were called in the same way: by events of the same names. Two ranks number
-- their stacks each for itself. All profiler steps are ProfilerStep* here.
CREATE OR REPLACE VIEW stacks AS
-- Columns:
--   run              VARCHAR          Run: one capture of one job.
--   rank             INTEGER          Rank of the process.
--   stack_id         BIGINT           event_id of the first event with this stack. A rank of over 262,144 stacks may have one twice.
--   parent_stack_id  BIGINT           The same stack without its last name; NULL where there is one name only.
--   depth            INTEGER [count]  Names above the last.
--   kind             VARCHAR          What the last name is of: operator, runtime, annotation, step, module or frame.
--   name             VARCHAR          The last name.
SELECT
    x.run,
    x.rank,
    x.stack_id,
    x.parent_stack_id,
    x.depth,
    x.kind,
    x.name
FROM stored.stacks AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
