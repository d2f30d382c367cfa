-- Distinct call stacks of host threads: chains of names from an outermost event down, once per rank.
--
-- Events with the same stack_id have the same chain of names. Each rank numbers its stacks independently. All
-- profiler steps are named ProfilerStep*.
CREATE OR REPLACE VIEW stacks AS
-- Columns:
--   run              VARCHAR          Run name: one capture of one job.
--   rank             INTEGER          Rank of the process.
--   stack_id         BIGINT           event_id of the first event with this stack. Ranks with more than 262,144 stacks may have duplicates.
--   parent_stack_id  BIGINT           stack_id of the stack without the last name; NULL if the stack has a single name.
--   depth            INTEGER [count]  Number of names above the last.
--   kind             VARCHAR          Kind of the last name: operator, runtime, annotation, step, module or frame.
--   name             VARCHAR          Last name of the stack.
SELECT x.* EXCLUDE (span)
FROM stored.stacks AS x
JOIN stored.rank_scope AS r ON r.run = x.run AND r.rank = x.rank AND r.span = x.span
