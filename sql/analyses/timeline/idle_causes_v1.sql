-- Why devices idle: each moment of a step in which nothing runs on the device, by what the host was doing on
-- the thread that launches next, longest first.
--
-- The rows of a rank sum to the three idle and the three unrecorded times of `step_accounting` in the same
-- steps, to the nanosecond. Unrecorded time is not idle: the device runs work that the trace does not hold. Up to the end of the call that launches the next operation the time is the host's; from
-- there to the start of that operation it is the device's, a row of its own (device queue). What runs in
-- a gap is not always what caused it: where the gap began under a call that holds the host until the device is
-- through, the queue had run dry, and whatever the host does next is seen. Such rows have the role effect; without
-- that synchronization the device might have had work meanwhile. Loading of data counts as a cause even so.
--
-- Title: Why GPUs are idle
-- Status: stable
-- Since: 0.1
-- Reference: TensorBoard profiler plugin "Other", by what the host does
-- Needs: GPU activity; steps need the profiler's schedule, names outside of operators need with_stack or record_function
-- Ranks: independent
-- Report: first 3
CREATE OR REPLACE MACRO idle_causes_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- What is named first: operator (the innermost), outermost operator, module, frame or annotation. Where none is
    -- open, the innermost of operator, frame and annotation is.
    level VARCHAR := 'operator'
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   position       BIGINT [1]      1 for what costs the rank most.
--   cause          VARCHAR         data loading, synchronization, runtime call, host operator, module, python, annotation; no event: none is open on the thread; device queue; unrecorded: not idle; unknown: the launch is not in the trace.
--   relation       VARCHAR         cause; effect: runs after a synchronization that drained the queue; device; unrecorded; unknown.
--   name           VARCHAR         What the host was in, by level; NULL if nothing was open or it is the device's.
--   call           VARCHAR         Runtime call that it was in, but for those that launch kernels; NULL otherwise.
--   module         VARCHAR         Class of the innermost nn.Module; NULL if none or not recorded.
--   idle_ns        BIGINT [ns]     Idle time; unrecorded time of that cause.
--   idle_pct       DOUBLE [%]      Share of all rows of the rank.
--   step_pct       DOUBLE [%]      Share of the steps of the rank.
--   gap_count      BIGINT [count]  Gaps that it is in; one over the bound of two steps counts in each.
--   longest_ns     BIGINT [ns]     Most of it in one gap.
--   longest_step   BIGINT          Step of that gap; NULL in a trace without steps.
--   longest_ts     BIGINT [ns]     Start of what counts of that gap, since the run's first event.
--   event_id       BIGINT          What to look at there: event of the host, or the operation of the device that ends it; NULL if unknown.
--   message_code   VARCHAR         Code of the message in the table messages.
--   message        VARCHAR         What it means and what to try.
--   next_analysis  VARCHAR         Analysis that shows more.
WITH
    parts AS MATERIALIZED (
        FROM lib.idle_parts(runs, ranks, steps, include_last_profiler_step)
    ),
    causes AS (
        FROM lib.caused_idle(runs, ranks, 'parts', level)
    ),
    described AS (
        SELECT
            c.*,
            CASE c.cause
                WHEN 'data loading' THEN lib.message('idle_causes.data_loading', NULL)
                WHEN 'synchronization' THEN lib.message('idle_causes.synchronization', NULL)
                WHEN 'runtime call' THEN
                    CASE
                        WHEN regexp_matches(coalesce(c.call, c.name), 'Malloc|HostAlloc|Free|MemCreate|MemAlloc|MemRelease|MemMap|MemUnmap') THEN lib.message('idle_causes.driver_memory', NULL)
                        WHEN regexp_matches(coalesce(c.call, c.name), '(Module|Library)Load|ModuleGetFunction|FuncGetAttributes') THEN lib.message('idle_causes.module_loading', NULL)
                        ELSE lib.message('idle_causes.runtime_call', NULL)
                    END
                WHEN 'host operator' THEN
                    CASE
                        WHEN regexp_matches(c.name, '^(Torch-Compiled Region|## Call CompiledFxGraph|CompiledFunction|triton_)') THEN lib.message('idle_causes.compiled_code', NULL)
                        ELSE lib.message('idle_causes.host_operator', NULL)
                    END
                WHEN 'module' THEN lib.message('idle_causes.module', NULL)
                WHEN 'python' THEN lib.message('idle_causes.python', NULL)
                WHEN 'annotation' THEN lib.message('idle_causes.annotation', NULL)
                WHEN 'device queue' THEN lib.message('idle_causes.device_queue', NULL)
                WHEN 'unrecorded' THEN lib.message('idle_causes.unrecorded', NULL)
                WHEN 'no event' THEN lib.message('idle_causes.no_event', NULL)
                ELSE lib.message('idle_causes.unknown', NULL)
            END AS message
        FROM causes AS c
    )
SELECT
    c.run,
    c.rank,
    row_number() OVER (PARTITION BY c.run, c.rank ORDER BY c.idle_ns DESC, c.cause, c.relation, c.name, c.call, c.module) AS position,
    c.cause,
    c.relation,
    c.name,
    c.call,
    c.module,
    c.idle_ns,
    100::DOUBLE * c.idle_ns / sum(c.idle_ns) OVER (PARTITION BY c.run, c.rank) AS idle_pct,
    100::DOUBLE * c.idle_ns / s.step_ns AS step_pct,
    c.gap_count,
    c.longest_ns,
    c.longest_step,
    c.longest_ts,
    c.event_id,
    c.message.code AS message_code,
    lib.message_text(t.message, lib.with_fields(c.message.fields, {'is_effect': c.relation = 'effect'})) AS message,
    CASE
        WHEN c.cause IN ('device queue', 'no event') THEN 'idle_gaps'
        WHEN c.cause IN ('unknown', 'unrecorded') THEN 'rank_health'
        ELSE 'event_stack'
    END AS next_analysis
FROM described AS c
JOIN lib.step_sums(runs, ranks, steps, include_last_profiler_step) AS s ON s.run = c.run AND s.rank = c.rank
LEFT JOIN messages AS t ON t.code = c.message.code
ORDER BY c.run, c.rank, position
