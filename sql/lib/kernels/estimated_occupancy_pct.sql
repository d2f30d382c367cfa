-- Recorded estimate of the achieved occupancy, without values that are no estimate.
--
-- Kineto writes the estimate as an integer, so 0 may be an occupancy below 0.5 %. Its estimate assumes the default limit
-- of 48 KiB of shared memory per block: for kernels that use more, no block fits and Kineto writes 0, although they ran.
-- A negative value means that the estimate failed.
--
-- Reference: Kineto, kernelOccupancy in DeviceProperties.cpp (FUNC_SHMEM_LIMIT_DEFAULT)
CREATE OR REPLACE MACRO lib.estimated_occupancy_pct(
    -- Recorded estimate [%].
    recorded_pct,
    -- Shared memory per block [bytes].
    shared_bytes
) AS
-- Returns: DOUBLE [%]  Estimated achieved occupancy; NULL if not recorded, or if the recorded value is no estimate.
CASE WHEN recorded_pct > 0 OR (recorded_pct = 0 AND coalesce(shared_bytes, 0) <= 48 * 1024) THEN recorded_pct::DOUBLE END
