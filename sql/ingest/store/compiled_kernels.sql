-- Compiled kernels as described by Inductor's files next to the trace.
SELECT
    j.run,
    j.rank,
    x.* EXCLUDE (part)
FROM staged_compiled_kernels AS x
JOIN rank_frame AS j ON j.part = x.part
ORDER BY x.part, x.kernel_id
