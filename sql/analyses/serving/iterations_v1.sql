-- Iterations of a serving engine: requests and tokens, host and device time, and the gaps between iterations.
--
-- Iterations are annotations of the engine (iteration_formats). On a rank without such annotations, they are calls of
-- Python frames or ranges of an engine (iteration_frames) or, without these, periods of graph replays; their phase and
-- tokens are unknown. If the replays have no period, there are no rows. A device operation belongs to the iteration
-- during which the iteration's thread launched it; a replay includes all its kernels. The device part usually ends
-- after the host part: engines prepare the next iteration while the device runs this one.
--
-- Title: Serving iterations
-- Shown: rank, iteration, phase, iteration_ns, request_count, new_tokens, busy_pct, context_tokens, host_ns, gap_before_ns, execution
-- Report: first 3; table
-- Status: experimental
-- Since: 0.1
-- Reference: vLLM, SGLang, ATOM and TensorRT-LLM, as stated in each line of iteration_formats
-- Needs: annotations of a serving engine, or graph replays
-- Scope: runs, ranks; iterations of a server are not profiler steps
CREATE OR REPLACE MACRO iterations_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run                      VARCHAR          Run name.
--   rank                     INTEGER          Rank of the process.
--   iteration                BIGINT [1]       Number of the iteration on the rank, from 1.
--   detected_by              VARCHAR          annotation, frame (a Python frame or range of an engine) or graph (a period of graph replays).
--   framework                VARCHAR          Engine; NULL if no annotation names it.
--   phase                    VARCHAR          prefill, decode, mixed, speculative or idle; NULL if unknown.
--   request_count            BIGINT [count]   Number of requests; all numbers of requests and tokens are NULL if the annotation does not state them.
--   new_tokens               BIGINT [tokens]  Number of tokens processed.
--   prefill_tokens           BIGINT [tokens]  Part of new_tokens that belongs to prompts.
--   min_output_tokens        BIGINT [tokens]  Minimum number of generated tokens: one for each request that decodes.
--   max_output_tokens        BIGINT [tokens]  Maximum number of generated tokens: prompts may end in the iteration, and speculated tokens may be accepted.
--   context_tokens           BIGINT [tokens]  Sum of the context lengths of all requests, which attention reads.
--   attention_pair_count     BIGINT [count]   Number of query-key pairs of causal attention.
--   padded_request_count     BIGINT [count]   Number of requests for which the iteration's graph was captured.
--   padded_tokens            BIGINT [tokens]  Number of tokens for which the iteration's graph was captured, from the annotation around the capture, otherwise padded_request_count if each request has one token.
--   ts                       BIGINT [ns]      Start on the host, relative to the run's first event.
--   host_ns                  BIGINT [ns]      Duration on the host.
--   device_ts                BIGINT [ns]      Start of the first device operation; NULL if there is none.
--   device_ns                BIGINT [ns]      Time from device_ts to the end of the last device operation, minus unrecorded_ns.
--   unrecorded_ns            BIGINT [ns]      Time during which the device ran work that is not in the trace, between device_ts and the end of the last device operation.
--   busy_ns                  BIGINT [ns]      Part of device_ns during which at least one operation of the iteration runs.
--   busy_pct                 DOUBLE [%]       busy_ns as a share of device_ns.
--   gap_before_ns            BIGINT [ns]      Time from the end of all earlier iterations on the device to device_ts, without unrecorded time; negative if the iterations overlap.
--   iteration_ns             BIGINT [ns]      device_ns plus gap_before_ns if it is positive; for a decode, this is the time per output token.
--   min_output_tokens_per_s  DOUBLE [1/s]     min_output_tokens / iteration_ns.
--   execution                VARCHAR          graph (at least nine of ten operations are in replays), piecewise (some) or eager (none).
--   graph_count              BIGINT [count]   Number of graph replays.
--   op_count                 BIGINT [count]   Number of device operations.
--   name                     VARCHAR          Name of the annotation, or of the call that replays the graph.
--   event_id                 BIGINT           event_id of that annotation or call.
WITH
    found AS MATERIALIZED (
        FROM lib.serving_iterations(runs, ranks)
    ),
    ops AS (
        FROM lib.iteration_ops('found', runs, ranks)
    )
FROM lib.measured_iterations('found', 'ops') AS m
ORDER BY m.run, m.rank, m.iteration
