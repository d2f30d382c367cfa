-- One row per frame of the stacks in a Flight Recorder dump; each stack appears once.
SELECT
    j.run,
    j.rank,
    x.stack_id,
    x.depth,
    x.name,
    x.file,
    x.line
FROM staged_fr_frames AS x
CROSS JOIN job AS j
ORDER BY x.stack_id, x.depth
