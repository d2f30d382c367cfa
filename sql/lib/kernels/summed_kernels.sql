-- Device operations with selected names on each rank, next to the rank's step time: the input of an advice rule.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.summed_kernels(
    -- Name of a relation with the columns of lib._advice_kernels: the selected rows.
    chosen,
    -- Name of a relation with the columns of lib.step_sums.
    spans
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   subject       VARCHAR         Operator that launched the operations with the longest total duration, otherwise the name of these operations.
--   kernel        VARCHAR         Operation with the longest total duration.
--   event_count   BIGINT [count]  Number of operations.
--   affected_ns   BIGINT [ns]     Total duration.
--   affected_pct  DOUBLE [%]      affected_ns as a share of recorded step time.
--   event_id      BIGINT          event_id of a long operation in the group with the longest total.
--   evidence_sql  VARCHAR         Query that returns all operations on the rank with the name in kernel.
--   recorded_ns   BIGINT [ns]     Total recorded step time.
--   compute_ns    BIGINT [ns]     Part of recorded_ns with a computation kernel running.
--   transfer_ns   BIGINT [ns]     Time in collectives after all ranks arrived, not overlapped by compute.
--   unmatched_ns  BIGINT [ns]     Time in collectives that are unmatched, or whose end times disagree, not overlapped by compute or transfer: transfer or wait, which of the two is unknown.
--   memory_ns     BIGINT [ns]     Time in copies and memsets, not overlapped by compute or communication.
WITH
    _summed AS (
        SELECT
            k.run, k.rank,
            arg_max(coalesce(k.op_name, k.name), (k.total_ns, k.name)) AS subject,
            arg_max(k.name, (k.total_ns, k.name)) AS kernel,
            sum(k.event_count)::BIGINT AS event_count,
            sum(k.total_ns)::BIGINT AS affected_ns,
            arg_max(k.event_id, (k.total_ns, k.name, -k.event_id)) AS event_id
        FROM query_table(chosen) AS k
        GROUP BY k.run, k.rank
    )
SELECT
    u.run, u.rank, u.subject, u.kernel, u.event_count, u.affected_ns, 100 * (u.affected_ns / nullif(s.recorded_ns, 0)) AS affected_pct, u.event_id,
    format('FROM gpu_ops WHERE run = {} AND rank = {} AND name = {} ORDER BY dur DESC', lib.sql_literal(u.run), u.rank, lib.sql_literal(u.kernel)) AS evidence_sql,
    s.recorded_ns, s.compute_ns, s.transfer_ns, s.unmatched_ns, s.memory_ns
FROM _summed AS u
JOIN query_table(spans) AS s ON s.run = u.run AND s.rank = u.rank
