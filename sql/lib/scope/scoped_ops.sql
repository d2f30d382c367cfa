-- Host events and device activity of the requested runs, ranks and steps, for comparison by name.
--
-- Covers scoped_host_events and all device activity with a possible duration, including synchronizations. A step
-- contains the device activity launched in it. Operations without a launch in the trace belong to no step, and are
-- included only if no steps are selected.
CREATE OR REPLACE MACRO lib.scoped_ops(
    runs,
    ranks,
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run       VARCHAR      Run name.
--   rank      INTEGER      Rank of the process.
--   event_id  BIGINT       Position of the event in traceEvents.
--   step      BIGINT       Profiler step; NULL outside steps.
--   side      VARCHAR      Side on which the operation runs: host or device.
--   category  VARCHAR      Host: as in scoped_host_events. Device: kernel, gpu_memcpy, gpu_memset or cuda_sync.
--   name      VARCHAR      Name of the event.
--   shapes    VARCHAR      Input shapes as JSON; for operators only.
--   ts        BIGINT [ns]  Start, relative to the run's first event.
--   dur       BIGINT [ns]  Duration.
--   stream    BIGINT       Device stream; NULL on the host.
SELECT
    h.run, h.rank, h.event_id, h.step, 'host' AS side, h.category, h.name, h.input_dims AS shapes, h.ts, h.dur,
    NULL::BIGINT AS stream
FROM lib.scoped_host_events(runs, ranks, steps, include_last_profiler_step) AS h
UNION ALL
SELECT
    g.run, g.rank, g.event_id, CASE WHEN g.launch_id IS NOT NULL THEN g.step END, 'device', g.category, g.name, NULL, g.ts, g.dur,
    g.stream
FROM gpu_ops AS g
WHERE
    NOT g.is_suspect
    AND lib.is_requested(runs, g.run)
    AND lib.is_requested(ranks, g.rank)
    AND lib.is_requested(steps, CASE WHEN g.launch_id IS NOT NULL THEN g.step END)
    AND (include_last_profiler_step OR NOT g.in_last_step)
