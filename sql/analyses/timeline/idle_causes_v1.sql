-- Why devices idle: each moment of a step in which nothing runs on the device, by what the host was doing on
-- the thread that launches next, longest first.
--
-- The rows of a rank sum to idle_before_ns + idle_between_ns + idle_after_ns of `step_accounting` in the same
-- steps, to the nanosecond. Up to the end of the call that launches the next operation the time is the host's; from
-- there to the start of that operation it is the device's, a row of its own (device queue). What runs in
-- a gap is not always what caused it: where the gap began under a call that holds the host until the device is
-- through, the queue had run dry, and whatever the host does next is seen. Such rows have the role effect; without
-- that synchronisation the device might have had work meanwhile. Loading of data counts as a cause even so.
--
-- Status: stable
-- Since: 0.1
-- Reference: TensorBoard profiler plugin "Other", by what the host does
-- Needs: GPU activity; steps need the profiler's schedule, names outside of operators need with_stack or record_function
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
--   run            VARCHAR          Run name.
--   rank           INTEGER          Rank of the process.
--   place          BIGINT [1]       1 for what costs the rank most.
--   cause          VARCHAR          data loading, synchronisation, runtime call, host operator, module, python, annotation; no event: none is open on the thread; device queue; unknown: the launch is not in the trace.
--   role           VARCHAR          cause; effect: runs after a synchronisation that drained the queue; device; unknown.
--   name           VARCHAR          What the host was in, by level; NULL if nothing was open or it is the device's.
--   call           VARCHAR          Runtime call that it was in, but for those that launch kernels; NULL otherwise.
--   module         VARCHAR          Class of the innermost nn.Module; NULL if none or not recorded.
--   idle_ns        BIGINT [ns]      Idle time.
--   idle_pct       DOUBLE [%]       Share of the idle time of the rank.
--   step_pct       DOUBLE [%]       Share of the steps of the rank.
--   gap_count      BIGINT [count]   Gaps that it is in; one over the bound of two steps counts in each.
--   longest_ns     BIGINT [ns]      Most of it in one gap.
--   longest_step   BIGINT           Step of that gap; NULL in a trace without steps.
--   longest_ts     BIGINT [ns]      Start of what counts of that gap, since the run's first event.
--   event_id       BIGINT           What to look at there: event of the host, or the operation of the device that ends it; NULL if unknown.
--   message        VARCHAR          What it means and what to try.
--   look_at        VARCHAR          Analysis that shows more.
WITH
    parts AS MATERIALIZED (
        FROM lib.idle_parts(runs, ranks, steps, include_last_profiler_step)
    ),
    waiting AS (
        SELECT p.* FROM parts AS p WHERE p.waits_for = 'host'
    ),
    launches AS (
        SELECT DISTINCT g.run, g.rank, g.launch_id
        FROM gpu_ops AS g
        WHERE g.class NOT IN ('memory', 'sync') AND lib.wanted(runs, g.run) AND lib.wanted(ranks, g.rank)
    ),
    named AS (
        SELECT
            s.part,
            s.dur,
            s.event_id,
            s.is_loading,
            s.call_name LIKE '%Synchronize%' AND s.is_call OR s.is_call AND s.event_id = p.drain_id AS synchronises,
            p.drain_id IS NOT NULL AS is_drained,
            CASE WHEN s.is_call AND l.launch_id IS NULL THEN s.call_name END AS call,
            CASE level
                WHEN 'operator' THEN {'cause': 'host operator', 'name': s.op_name}
                WHEN 'outermost operator' THEN {'cause': 'host operator', 'name': s.outer_op_name}
                WHEN 'module' THEN {'cause': 'module', 'name': s.module_name}
                WHEN 'frame' THEN {'cause': 'python', 'name': s.frame_name}
                WHEN 'annotation' THEN {'cause': 'annotation', 'name': s.annotation_name}
                ELSE error('level: "' || level || '" is none of operator, outermost operator, module, frame, annotation')
            END AS first,
            CASE
                WHEN s.inner_kind = 'op' THEN {'cause': 'host operator', 'name': s.inner_name}
                WHEN s.inner_kind = 'frame' THEN {'cause': 'python', 'name': s.inner_name}
                WHEN s.inner_kind = 'annotation' THEN {'cause': 'annotation', 'name': s.inner_name}
                WHEN s.call_name IS NOT NULL THEN {'cause': 'runtime call', 'name': s.call_name}
            END AS second,
            regexp_replace(s.module_name, '_\d+$', '') AS module
        FROM lib.host_stretches(runs, ranks, 'waiting') AS s
        JOIN parts AS p ON p.part = s.part
        LEFT JOIN launches AS l ON l.run = p.run AND l.rank = p.rank AND l.launch_id = s.event_id
    ),
    told AS (
        SELECT
            n.part,
            n.dur,
            n.event_id,
            CASE
                WHEN n.is_loading THEN 'data loading'
                WHEN n.synchronises THEN 'synchronisation'
                WHEN n.call IS NOT NULL THEN 'runtime call'
                WHEN n.first.name IS NOT NULL THEN n.first.cause
                ELSE coalesce(n.second.cause, 'no event')
            END AS cause,
            CASE
                WHEN n.event_id IS NULL THEN 'unknown'
                WHEN n.is_drained AND NOT n.is_loading AND NOT n.synchronises THEN 'effect'
                ELSE 'cause'
            END AS role,
            -- Frames of Python's own functions have addresses, which are never twice the same.
            regexp_replace(coalesce(n.first.name, n.second.name), ' at 0x[0-9a-fA-F]+', '') AS name,
            n.call,
            n.module
        FROM named AS n
        UNION ALL
        SELECT
            p.part, p.dur, p.next_id,
            CASE p.waits_for WHEN 'device' THEN 'device queue' ELSE 'unknown' END, p.waits_for, NULL, NULL, NULL
        FROM parts AS p
        WHERE p.waits_for <> 'host'
    ),
    -- A gap has up to two parts in a step, and many stretches.
    in_parts AS (
        SELECT t.part, t.cause, t.role, t.name, t.call, t.module, sum(t.dur)::BIGINT AS ns, arg_max(t.event_id, (t.dur, -t.event_id)) AS event_id
        FROM told AS t
        GROUP BY ALL
    ),
    in_steps AS (
        SELECT i.*, p.run, p.rank, p.ts, unnest(p.in_steps) AS step
        FROM in_parts AS i
        JOIN parts AS p ON p.part = i.part
    ),
    spans AS (
        SELECT p.run, p.rank, sum(p.step_ns)::BIGINT AS step_ns
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
        GROUP BY p.run, p.rank
    ),
    causes AS (
        SELECT
            i.run, i.rank, i.cause, i.role, i.name, i.call, i.module,
            sum(i.ns)::BIGINT AS idle_ns,
            count(*) AS gap_count,
            arg_max({'ns': i.ns, 'step': i.step, 'ts': i.ts, 'event_id': i.event_id}, (i.ns, -i.ts, -coalesce(i.step, 0))) AS longest
        FROM in_steps AS i
        GROUP BY ALL
    )
SELECT
    c.run,
    c.rank,
    row_number() OVER (PARTITION BY c.run, c.rank ORDER BY c.idle_ns DESC, c.cause, c.role, c.name, c.call, c.module) AS place,
    c.cause,
    c.role,
    c.name,
    c.call,
    c.module,
    c.idle_ns,
    100::DOUBLE * c.idle_ns / sum(c.idle_ns) OVER (PARTITION BY c.run, c.rank) AS idle_pct,
    100::DOUBLE * c.idle_ns / s.step_ns AS step_pct,
    c.gap_count,
    c.longest.ns AS longest_ns,
    c.longest.step AS longest_step,
    c.longest.ts AS longest_ts,
    c.longest.event_id AS event_id,
    CASE c.cause
        WHEN 'data loading' THEN 'GPUs wait for data: the host is in the data loader. Try more workers, pinned memory, prefetching, or cheaper preprocessing.'
        WHEN 'synchronisation' THEN 'The host returns from waiting for the GPU with nothing queued behind. Try without .item(), .cpu(), if on a tensor or synchronize() there.'
        WHEN 'runtime call' THEN
            CASE
                WHEN regexp_matches(coalesce(c.call, c.name), 'Malloc|HostAlloc|Free|MemCreate|MemAlloc|MemRelease|MemMap|MemUnmap') THEN 'The host allocates or frees memory in the driver. Try to warm up first, and expandable_segments or buffers that are used again.'
                WHEN regexp_matches(coalesce(c.call, c.name), '(Module|Library)Load|ModuleGetFunction|FuncGetAttributes') THEN 'The driver brings code to the GPU, as the first time a kernel is used. Try to warm up before what counts.'
                ELSE 'The host is in a call to the driver. Level frame says from where.'
            END
        WHEN 'host operator' THEN
            CASE
                WHEN regexp_matches(c.name, '^(Torch-Compiled Region|## Call CompiledFxGraph|CompiledFunction|triton_)') THEN 'The host takes longer in compiled code to launch than the GPU to work. Try mode="reduce-overhead", which makes CUDA graphs, or larger batches.'
                ELSE 'The host takes longer in this operator to launch than the GPU to work. Try larger batches, fused operators, torch.compile or CUDA graphs.'
            END
        WHEN 'module' THEN 'The host takes longer in this module to launch than the GPU to work. Level operator says in which operators.'
        WHEN 'python' THEN 'Python runs outside of operators, and the GPU waits. Look at this function: can it run before, later, on a thread, or on the GPU?'
        WHEN 'annotation' THEN 'The host is in this range and in no operator. Record with_stack=True to see which Python code.'
        WHEN 'device queue' THEN 'Launched, and not running yet: latency of launches, another stream, or an event. Short gaps: fewer, larger kernels or CUDA graphs.'
        WHEN 'no event' THEN 'Nothing is recorded on the thread that launches next: Python without with_stack=True, or it waits for another thread.'
        ELSE 'The launch of the operation that ends the gap is not in the trace.'
    END || CASE c.role WHEN 'effect' THEN ' The GPU had run dry before, in a synchronisation: see to that first.' ELSE '' END AS message,
    CASE
        WHEN c.cause IN ('device queue', 'no event') THEN 'idle_gaps'
        WHEN c.cause = 'unknown' THEN 'rank_health'
        ELSE 'event_stack'
    END AS look_at
FROM causes AS c
JOIN spans AS s ON s.run = c.run AND s.rank = c.rank
ORDER BY c.run, c.rank, place
