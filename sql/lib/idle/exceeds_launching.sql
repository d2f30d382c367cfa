-- Whether gaps are longer than launching explains: the host works on something else. The limit is 200 launches a gap on
-- average, about 1 ms.
CREATE OR REPLACE MACRO lib.exceeds_launching(
    -- Total idle time [ns].
    idle_ns,
    -- Number of gaps.
    gap_count,
    -- Usual length of a launch on the rank, from lib.launch_lengths [ns].
    launch_ns
) AS
-- Returns: BOOLEAN  NULL if an argument is NULL.
    idle_ns > 200 * launch_ns::HUGEINT * gap_count
