-- Every communication kernel of every rank, and every gloo call on the host: collective, group, size, and match
-- across ranks.
--
-- The kind of collective comes from the kernel's arguments, otherwise from the operator that launched it, otherwise
-- from the kernel name. Rank lists that the profiler truncated are completed. Kernels are matched by sequence number if
-- the numbers are consistent, otherwise by order, shifted by the number of collectives missing at the start of a
-- capture (match_method). An unmatched kernel has a collective_id of its own. Times are on the clock shared by all
-- ranks; clock_correction_ns has been subtracted from the rank's own times.
--
-- Title: Every collective of every rank
-- Shown: rank, step, collective, dur_ns, bytes, pg_name, group_size, start_ns, stream, op_name
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens nccl_long
-- Needs: kernels that communicate, or annotations of gloo
CREATE OR REPLACE MACRO collectives_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run                  VARCHAR         Run name.
--   collective_id        BIGINT          Id of the collective, the same on all its ranks; numbered from 1 in each run in time order.
--   rank                 INTEGER         Rank of the process.
--   step                 BIGINT          Profiler step; NULL outside steps.
--   collective           VARCHAR         Kind of collective: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, send, recv, …
--   detected_by          VARCHAR         Source of the kind of collective: metadata, operator or name.
--   pg_name              VARCHAR         Process group name.
--   pg_desc              VARCHAR         Process group description.
--   pg_ranks             VARCHAR         Ranks of the group as JSON, completed if the profiler truncated them.
--   group_size           BIGINT [1]      Number of ranks in the group; if not recorded, number of ranks found to take part.
--   elem_type            VARCHAR         Element type.
--   in_elems             BIGINT [1]      Number of elements sent.
--   out_elems            BIGINT [1]      Number of elements received.
--   bytes                BIGINT [bytes]  Message size as defined by nccl-tests.
--   in_split_sizes       VARCHAR         Split sizes of the input as JSON.
--   out_split_sizes      VARCHAR         Split sizes of the output as JSON.
--   seq                  BIGINT          Recorded sequence number.
--   src_rank             BIGINT          Sending rank of a point-to-point operation.
--   dst_rank             BIGINT          Receiving rank of a point-to-point operation.
--   device               BIGINT          Device number.
--   stream               BIGINT          Device stream.
--   event_id             BIGINT          event_id of the kernel, or of the annotation for gloo on the host.
--   name                 VARCHAR         Name of the kernel or the annotation.
--   start_ns             BIGINT [ns]     Start on the clock shared by all ranks.
--   dur_ns               BIGINT [ns]     Duration.
--   clock_correction_ns  BIGINT [ns]     Correction subtracted from the rank's clock.
--   op_id                BIGINT          event_id of the operator that launched the kernel.
--   op_name              VARCHAR         Name of the launching operator.
--   module               VARCHAR         Innermost nn.Module that encloses the launch.
--   match_method         VARCHAR         How the collective was matched: seq (sequence number), ordinal (order, shifted by a constant), time (start times, where events are missing), stream (order on the stream; group unknown) or none.
--   found_count          BIGINT [count]  Number of ranks on which the collective was found.
--   rank_count           BIGINT [count]  Number of ranks whose traces contain the group.
SELECT
    c.run,
    c.collective_id,
    c.rank,
    c.step,
    c.collective,
    c.detected_by,
    c.pg_name,
    c.pg_desc,
    coalesce(c.member_ranks, c.pg_ranks) AS pg_ranks,
    coalesce(c.group_size, c.rank_count) AS group_size,
    c.elem_type,
    c.in_elems,
    c.out_elems,
    lib.message_bytes(c.collective, c.elem_type, c.in_elems, c.out_elems) AS bytes,
    c.in_split_sizes,
    c.out_split_sizes,
    c.seq,
    c.src_rank,
    c.dst_rank,
    c.device,
    c.stream,
    c.event_id,
    coalesce(g.name, a.name) AS name,
    c.start_ns,
    c.dur AS dur_ns,
    c.clock_correction_ns,
    c.op_id,
    o.name AS op_name,
    lib.module_name(p.name) AS module,
    c.match_method,
    c.found_count,
    c.rank_count
FROM lib.scoped_collectives(runs, ranks, steps, include_last_profiler_step) AS c
LEFT JOIN gpu_ops AS g ON g.run = c.run AND g.rank = c.rank AND g.event_id = c.event_id
LEFT JOIN annotations AS a ON c.on_host AND a.run = c.run AND a.rank = c.rank AND a.event_id = c.event_id
LEFT JOIN cpu_ops AS o ON o.run = c.run AND o.rank = c.rank AND o.event_id = c.op_id
LEFT JOIN python_calls AS p ON p.run = c.run AND p.rank = c.rank AND p.event_id = c.module_id
ORDER BY c.run, c.collective_id, c.rank
