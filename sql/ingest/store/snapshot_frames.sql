-- One row for each frame of the stacks of a memory snapshot; each stack once.
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
