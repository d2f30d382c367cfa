-- Where each step of the host goes on the device, in parts that sum to it; and the same of the window that all ranks
-- of a run have in common, in blocks.
--
-- Computed once for all ranks of a run and kept beside the tables; what is not kept is computed by the question.
CREATE OR REPLACE VIEW step_parts AS
-- Columns:
--   run                   VARCHAR      Run: one capture of one job.
--   rank                  INTEGER      Rank of the process.
--   span                  INTEGER      Recording of the rank.
--   step                  BIGINT       Profiler step; NULL for the whole of a trace without steps, and for blocks.
--   is_last               BOOLEAN      Whether this is the rank's last step.
--   is_common             BOOLEAN      A block of the common window, which reaches from the first to the last collective that all ranks have seen.
--   block                 BIGINT       Number of the block in the run, from 0: a step, or as many collectives if there are no steps. NULL for steps of the host.
--   ts                    BIGINT [ns]  Start of the step on the host, since the run's first event.
--   step_ns               BIGINT [ns]  Duration of the step on the host: the sum of the parts.
--   compute_ns            BIGINT [ns]  Time with a computation kernel running.
--   exposed_transfer_ns   BIGINT [ns]  Time in collectives after all ranks arrived, or in unmatched collectives, not overlapped by compute.
--   exposed_unmatched_ns  BIGINT [ns]  Of that, in collectives without a match on other ranks, or whose end times disagree: waiting in them is not known.
--   exposed_wait_ns       BIGINT [ns]  Time in collectives waiting for another rank, not overlapped by compute or transfer.
--   exposed_memory_ns     BIGINT [ns]  Time in copies and memsets, not overlapped by compute or communication.
--   recorded_ns           BIGINT [ns]  The step without the three unrecorded parts.
--   unrecorded_before_ns  BIGINT [ns]  Nothing recorded: the device ran work launched before the recording.
--   unrecorded_lost_ns    BIGINT [ns]  Nothing recorded: records of launched kernels are missing.
--   unrecorded_after_ns   BIGINT [ns]  Nothing recorded: launched work still ran when the recording ended.
--   undecided_ns          BIGINT [ns]  Part of idle_before_ns in which the device may have run work launched before the recording.
--   idle_before_ns        BIGINT [ns]  Nothing, before the first device activity of the step, recorded or not.
--   idle_between_ns       BIGINT [ns]  Nothing, between the first and the last.
--   idle_after_ns         BIGINT [ns]  Nothing, after the last.
SELECT x.*
FROM derived.step_parts AS x
