-- Token exchanges between expert-parallel ranks: dispatch, combine and their preparation, by library.
--
-- Kernels of DeepEP, MoRI, pplx, TensorRT-LLM and others are recognized by name (`gpu_ops.comm_role`; the source for
-- each name is in sql/ingest/kernel_classes.csv). A call with a receive hook consists of two kernels of the same name:
-- the first sends, the second receives. The transfer happens between them, while no kernel runs. Calls of a low-latency
-- library are split into these two halves if at least 90 % of its sequences of consecutive dispatches or consecutive
-- combines have an even length.
--
-- The n-th calls of a role on all ranks in the store form one exchange, provided that all ranks made the same number of
-- calls. Time that a rank takes beyond the fastest rank counts as waiting, either for a straggler or for the rank with
-- the most tokens.
--
-- Title: Expert-parallel exchanges
-- Shown: rank, comm_library, comm_role, total_ns, overlap_pct, exposed_ns, wait_ns, call_count
-- Status: experimental
-- Since: 0.1
-- Reference: DeepEP (deepseek-ai/DeepEP), low-latency kernels with receive hooks
-- Needs: kernels of an expert-parallel library
-- Chart:
--   mark = "stack"
--   title = "Expert-parallel exchanges"
--   notes = ["Sum over the calls of each rank."]
--   bar = ["rank", "comm_role"]
--   legend = "Part"
--   whole = "exchanges"
--   parts.overlapped_ns = ["overlapped", "computation+communication"]
--   parts.exposed_ns = ["exposed", "communication"]
CREATE OR REPLACE MACRO expert_parallel_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   comm_library     VARCHAR         Name of the library.
--   comm_role        VARCHAR         dispatch, combine, notify (counts, layouts, barriers) or exchange (dispatch or combine).
--   half             VARCHAR         send or receive for a call made of two kernels, otherwise whole.
--   call_count       BIGINT [count]  Number of kernels.
--   total_ns         BIGINT [ns]     Total duration of the kernels.
--   overlapped_ns    BIGINT [ns]     Part of total_ns overlapped by compute.
--   exposed_ns       BIGINT [ns]     Part of total_ns not overlapped by compute.
--   overlap_pct      DOUBLE [%]      overlapped_ns as a share of total_ns.
--   transfer_ns      BIGINT [ns]     Part of total_ns up to the duration on the fastest rank; NULL with one rank, or if calls cannot be matched.
--   wait_ns          BIGINT [ns]     Remainder of total_ns: time beyond the fastest rank, overlapped or exposed, not the time until the last rank arrives; NULL if transfer_ns is NULL.
--   median_ns        BIGINT [ns]     Median duration of a call.
--   hidden_ns        BIGINT [ns]     Median time from the end of a send to the start of its receive, while the transfer runs without a kernel; NULL for sends and whole calls.
--   block_count      BIGINT [count]  Median number of thread blocks per call; the blocks occupy multiprocessors that are then unavailable to compute.
SELECT
    s.run,
    s.rank,
    s.comm_library,
    s.comm_role,
    s.half,
    count(*) AS call_count,
    sum(s.dur)::BIGINT AS total_ns,
    sum(s.overlapped_ns)::BIGINT AS overlapped_ns,
    sum(s.dur - s.overlapped_ns)::BIGINT AS exposed_ns,
    100 * sum(s.overlapped_ns) / nullif(sum(s.dur), 0) AS overlap_pct,
    CASE WHEN count(s.fastest_ns) = count(*) THEN sum(s.fastest_ns)::BIGINT END AS transfer_ns,
    CASE WHEN count(s.fastest_ns) = count(*) THEN sum(s.dur - s.fastest_ns)::BIGINT END AS wait_ns,
    round(median(s.dur))::BIGINT AS median_ns,
    round(median(s.since_ns) FILTER (s.half = 'receive'))::BIGINT AS hidden_ns,
    round(median(s.block_count))::BIGINT AS block_count
FROM lib.expert_calls(runs, ranks, steps, include_last_profiler_step) AS s
GROUP BY s.run, s.rank, s.comm_library, s.comm_role, s.half
ORDER BY s.run, s.rank, s.comm_library, s.comm_role, s.half DESC
