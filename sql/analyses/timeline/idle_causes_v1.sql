-- Why devices are idle: idle time in steps by the host activity on the thread that launches the next operation.
--
-- Rows of a run are ordered by time over all ranks, longest first. The rows of a rank sum exactly to the three idle and
-- three unrecorded times of `step_accounting` for the same steps. Unrecorded time is not idle: the device runs work that is not in the trace.
-- Time until the end of the call that launches the next operation is attributed to the host. Time from the end of that
-- call to the start of the operation is attributed to the device (device queue).
--
-- Host activity in a gap is not always its cause. If the gap began during a call that blocks the host until the device
-- has finished, the queue had drained, and any host activity that follows is only a consequence. Rows for such
-- activity have the relation effect: without the synchronization, the device might have had work. Loading data and
-- saving a checkpoint in such a gap still count as a cause.
--
-- Title: Why GPUs are idle
-- Shown: rank, idle_ns, step_pct, cause, name, relation, call, gap_count, longest_ns, next_analysis, event_id, message
-- Also: idle, data loader, dataloader
-- Status: stable
-- Since: 0.1
-- Reference: TensorBoard profiler plugin "Other", by host activity
-- Needs: GPU activity; steps need the profiler's schedule, and names outside operators need with_stack or record_function
-- Ranks: independent
-- Report: first 3
CREATE OR REPLACE MACRO idle_causes_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Kind of name to report: operator (the innermost), outermost operator, module, frame or annotation. If no event
    -- of that kind is open, the innermost operator, frame or annotation is reported.
    level VARCHAR := 'operator'
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   position       BIGINT [1]      Position by time on the rank; 1 is the longest.
--   cause          VARCHAR         Cause of the idle time: data loading, synchronization, runtime call, host operator, module, python, annotation, no event (none open on the thread), device queue, unrecorded (not idle) or unknown (no launch in the trace).
--   relation       VARCHAR         Relation to the idle time: cause, effect (after a synchronization that drained the queue), device, unrecorded or unknown.
--   name           VARCHAR         Name of the host activity, chosen by level; NULL if none was open or the device is the cause.
--   call           VARCHAR         Runtime call that was active, unless it launches kernels; NULL otherwise.
--   module         VARCHAR         Class of the innermost nn.Module; NULL if none or not recorded.
--   idle_ns        BIGINT [ns]     Idle time with this cause (unrecorded time if the cause is unrecorded).
--   idle_pct       DOUBLE [%]      idle_ns as a share of the rank's total over all rows.
--   step_pct       DOUBLE [%]      idle_ns as a share of the rank's recorded step time; for the cause unrecorded, of all its step time.
--   gap_count      BIGINT [count]  Number of gaps with this cause; a gap across a step boundary counts in each step.
--   longest_ns     BIGINT [ns]     Longest time with this cause in one gap.
--   longest_step   BIGINT          Step of the gap with the longest time; NULL in a trace without steps.
--   longest_ts     BIGINT [ns]     Start of the longest time, relative to the run's first event.
--   event_id       BIGINT          Event to inspect in the longest gap: the host event, or the device operation that ends the gap; NULL if unknown.
--   message_code   VARCHAR         Code of the message in the table messages.
--   message        VARCHAR         Explanation and recommended next step.
--   next_analysis  VARCHAR         Analysis that shows more; event_stack needs event_id as --event-ids and the rank as --ranks.
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
                        WHEN lib.exceeds_launching(c.idle_ns, c.gap_count, l.launch_ns) THEN lib.message('idle_causes.busy_operator', NULL)
                        WHEN regexp_matches(c.name, '^(Torch-Compiled Region|## Call CompiledFxGraph|CompiledFunction|triton_)') THEN lib.message('idle_causes.compiled_code', NULL)
                        ELSE lib.message('idle_causes.host_operator', NULL)
                    END
                WHEN 'module' THEN
                    CASE
                        WHEN lib.exceeds_launching(c.idle_ns, c.gap_count, l.launch_ns) THEN lib.message('idle_causes.busy_module', NULL)
                        ELSE lib.message('idle_causes.module', NULL)
                    END
                WHEN 'python' THEN lib.message('idle_causes.python', NULL)
                WHEN 'annotation' THEN lib.message('idle_causes.annotation', NULL)
                WHEN 'device queue' THEN lib.message('idle_causes.device_queue', NULL)
                WHEN 'unrecorded' THEN lib.message('idle_causes.unrecorded', NULL)
                WHEN 'no event' THEN lib.message('idle_causes.no_event', NULL)
                ELSE lib.message('idle_causes.unknown', NULL)
            END AS message
        FROM causes AS c
        LEFT JOIN lib.launch_lengths(runs, ranks) AS l ON l.run = c.run AND l.rank = c.rank
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
    100::DOUBLE * c.idle_ns / CASE c.cause WHEN 'unrecorded' THEN s.step_ns ELSE s.recorded_ns END AS step_pct,
    c.gap_count,
    c.longest_ns,
    c.longest_step,
    c.longest_ts,
    c.event_id,
    c.message.code AS message_code,
    lib.message_text(t.message, lib.with_fields(c.message.fields, {'is_effect': c.relation = 'effect'})) AS message,
    CASE
        WHEN c.cause IN ('unknown', 'unrecorded') THEN 'rank_health'
        WHEN c.event_id IS NULL OR c.cause IN ('device queue', 'no event') THEN 'idle_gaps'
        ELSE 'event_stack'
    END AS next_analysis
FROM described AS c
JOIN lib.step_sums(runs, ranks, steps, include_last_profiler_step) AS s ON s.run = c.run AND s.rank = c.rank
LEFT JOIN messages AS t ON t.code = c.message.code
ORDER BY c.run, c.idle_ns DESC, c.rank, position
