-- Windows in which steps are compared: the numbered steps on the device (lib.device_steps), with their duration on
-- the host.
--
-- A device runs behind its host, sometimes by a whole step. The step of an operation is the step of its launch, not
-- the step of the window in which it runs. The window shows when the device is idle, and which operations belong to
-- no step.
CREATE OR REPLACE MACRO lib._compared_windows(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run         VARCHAR      Run name.
--   rank        INTEGER      Rank of the process.
--   span        INTEGER      Recording of the rank.
--   step        BIGINT       Profiler step; NULL if the trace has no steps and the row covers all of it.
--   window_no   BIGINT [1]   Number of the window on its rank, from 1.
--   ts          BIGINT [ns]  Start time.
--   end_ts      BIGINT [ns]  End of the window, not before its start; windows of a rank do not overlap.
--   step_ns     BIGINT [ns]  Duration of the step on the host.
--   is_dropped  BOOLEAN      Whether this is the last of two or more steps, which is excluded by default.
SELECT
    d.run, d.rank, d.span, d.step,
    row_number() OVER (PARTITION BY d.run, d.rank ORDER BY d.from_ts, d.to_ts, d.host_ts, d.step) AS window_no,
    d.from_ts AS ts, d.to_ts AS end_ts, d.step_ns,
    d.is_last AND k.drops_last_step AS is_dropped
FROM lib.device_steps(runs, ranks, NULL, true) AS d
JOIN rank_spans AS k ON k.run = d.run AND k.rank = d.rank AND k.span = d.span
