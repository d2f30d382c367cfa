-- One row per frame of the stacks in a memory snapshot; each stack appears once.
SELECT
    j.run,
    j.rank,
    x.stack_id,
    x.depth,
    x.name,
    x.file,
    x.line
FROM staged_snapshot_frames AS x
CROSS JOIN job AS j
ORDER BY x.stack_id, x.depth
