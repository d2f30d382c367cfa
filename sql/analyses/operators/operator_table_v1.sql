-- Cost of each operator: calls, host and device time, memory and FLOPs, self and total, as in torch's key_averages.
--
-- Costs are attributed by torch's rules. Host self time of an operator is its time outside the operators, annotations,
-- Python frames and runtime calls that it called. If a runtime call outlasts the operator in which it starts (because
-- their times come from different clocks), the full duration of both is subtracted from the self time of their caller.
-- Sums remain correct, but the caller's self time may be negative. Device time belongs to the innermost operator that
-- encloses the launch, never to an annotation. Durations of device operations are summed even if they ran
-- concurrently. Memory is allocated minus freed bytes on any thread while the operator ran; changes outside all
-- operators are in the [memory] row.
--
-- Operations launched by no operator have rows of their own, so that device_self_ns of all rows sums to the duration
-- of all device operations. If a replayed graph was ingested with its capture, its operations are in the rows of the
-- captured operators, with a match_method. Operations in other replays are in the [graph replay] row, and all other
-- operations are in the [no operator] row. With like_torch, kernels have rows of their own instead. An operator whose
-- only callee is an operator of the same name, as with overloads, counts once. Backward operators have the stack of
-- their forward operator. A call without a recorded stack has the enclosing frames recorded by the Python tracer; with
-- like_torch, it has no stack. A trace does not record which operators end on a different thread (only gloo operators
-- are known to do so), nor the end of operators that were still running when the recording stopped.
--
-- Title: Cost of operators
-- Shown: rank, device_self_ns, device_self_pct, call_count, name, input_shapes, device_total_ns, host_self_ns
-- Also: key averages, top operators, op summary, operator time, operators, operator
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps, include_last_profiler_step; calls belong to the step in which they start
-- Reference: torch.profiler key_averages
-- Needs: host operators; record_shapes for shapes, types and FLOPs; profile_memory for bytes; with_stack for stacks, plus verbose for stacks like torch's
-- Report: first 1; at most 64 ranks
-- Ranks: independent
-- Chart:
--   mark = "bars"
--   title = "The most expensive operators"
--   notes = ["Self time, summed over all ranks: without callees. Device: the operations that they launch."]
--   empty = "No operator took any time."
--   name = "name"
--   measure = "Self time"
--   panels.device.device_self_ns = ["device", "neutral"]
--   panels.host.host_self_ns = ["host", "operator"]
--   tooltip.call_count = "Calls"
CREATE OR REPLACE MACRO operator_table_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether calls with different input shapes have separate rows.
    by_shapes BOOLEAN := false,
    -- Whether calls with different input types have separate rows.
    by_dtype BOOLEAN := false,
    -- Number of innermost Python frames that distinguish calls; 0: none.
    stack_frames BIGINT := 0,
    -- Whether overloads, such as Tensor of aten::add.Tensor, have separate rows.
    by_overload BOOLEAN := false,
    -- Whether calls in different nn.Modules have separate rows.
    by_module BOOLEAN := false,
    -- Whether calls on different threads have separate rows.
    by_thread BOOLEAN := false,
    -- Whether calls in different profiler steps have separate rows.
    by_step BOOLEAN := false,
    -- Whether to match torch's table: rows for Python frames, runtime calls and device operations, torch's order, and
    -- FLOPs only if recorded with with_flops.
    like_torch BOOLEAN := false
) AS TABLE
-- Columns:
--   run                      VARCHAR         Run name.
--   rank                     INTEGER         Rank of the process.
--   name                     VARCHAR         Operator name without its overload (also for replayed kernels), annotation name, [memory], [graph replay] or [no operator]; all profiler steps are named ProfilerStep*.
--   side                     VARCHAR         Where the call itself runs: host or device.
--   match_method             VARCHAR         How replayed kernels were matched with the capture that provides the operator, as in graph_matches; NULL if the operator does not come from a capture.
--   is_user_annotation       BOOLEAN         Whether the row is a record_function range.
--   overload_name            VARCHAR         Overload, empty if there is none; NULL without by_overload.
--   input_shapes             VARCHAR         Input shapes as JSON, with [] for a list of tensors; NULL without by_shapes.
--   input_types              VARCHAR         Input types as JSON; NULL without by_dtype.
--   stack                    VARCHAR         Python frames as JSON, innermost first; NULL without stack_frames.
--   module                   VARCHAR         Innermost enclosing nn.Module call; NULL without by_module, and for annotations.
--   pid                      BIGINT          Process id; NULL without by_thread.
--   tid                      BIGINT          Thread id; NULL without by_thread.
--   step                     BIGINT          Profiler step; NULL without by_step.
--   call_count               BIGINT [count]  Number of calls; in device rows, number of device operations.
--   host_self_ns             BIGINT [ns]     Host time excluding callees.
--   host_total_ns            BIGINT [ns]     Host time including callees.
--   device_self_ns           BIGINT [ns]     Duration of the device operations that the calls launched themselves; in device rows, duration of the row's operations. NULL for a rank without device activity, except with like_torch.
--   device_total_ns          BIGINT [ns]     Duration of the device operations launched by the calls and their callees; NULL like device_self_ns.
--   host_self_bytes          BIGINT [bytes]  Host memory allocated minus freed, excluding callees; NULL if memory is not recorded.
--   host_total_bytes         BIGINT [bytes]  Host memory allocated minus freed, including callees; NULL if memory is not recorded.
--   device_self_bytes        BIGINT [bytes]  Device memory allocated minus freed, excluding callees; NULL if memory is not recorded.
--   device_total_bytes       BIGINT [bytes]  Device memory allocated minus freed, including callees; NULL if memory is not recorded.
--   flops                    BIGINT [1]      Floating-point operations according to torch's formulas; NULL if there is no formula, or no shapes are recorded.
--   host_self_pct            DOUBLE [%]      host_self_ns as a share of all host time, including Python frames and runtime calls.
--   host_total_pct           DOUBLE [%]      host_total_ns as a share of all host time; nested calls count repeatedly.
--   device_self_pct          DOUBLE [%]      device_self_ns as a share of the total duration of all device operations.
--   device_total_pct         DOUBLE [%]      device_total_ns as a share of the total duration of all device operations.
--   tensor_core_pct          DOUBLE [%]      Share of device_self_ns in kernels that use tensor cores, judged by kernel name; NULL if unknown for all kernels, or if device_self_ns is 0.
--   tensor_core_unknown_pct  DOUBLE [%]      Share of device_self_ns in kernels whose names do not show whether they use tensor cores.
--   position                 BIGINT [1]      Position of the row in torch's order, by the start of the first call; NULL without like_torch.
WITH RECURSIVE
    -- lane + event_id identifies an event across runs and ranks.
    known AS (
        SELECT k.run, k.rank, bool_or(k.profile_memory) AS profile_memory, bool_or(k.with_flops) AS with_flops
        FROM ranks AS k
        WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
        GROUP BY k.run, k.rank
    ),
    lanes AS MATERIALIZED (
        SELECT
            k.run, k.rank, row_number() OVER (ORDER BY k.run, k.rank) << 40 AS lane,
            coalesce(k.profile_memory, false)
            OR EXISTS (FROM memory_events AS m WHERE m.run = k.run AND m.rank = k.rank) AS remembers,
            like_torch OR EXISTS (FROM lib.device_ranks(runs, ranks) AS g WHERE g.run = k.run AND g.rank = k.rank) AS has_device,
            NOT like_torch OR coalesce(k.with_flops, false) AS counts_flops
        FROM known AS k
    ),
    -- Compute the call tree on narrow rows; read names, shapes and stacks once, at the end.
    calls AS MATERIALIZED (
        SELECT
            l.lane, l.lane + c.event_id AS call_id, l.lane + c.parent_id AS parent_id, c.ts, c.dur,
            hash(lib.op_base_name(c.name)) AS name_hash,
            c.kind = 'operator' AS is_owner,
            c.kind = 'operator' AND c.name IN (
                'profiler::_record_function_enter', 'profiler::_record_function_enter_new', 'profiler::_record_function_exit',
                'aten::is_leaf', 'aten::output_nr', 'aten::_version'
            ) AS is_dropped,
            c.kind = 'annotation' AND starts_with(c.name, 'gloo:') AS is_async,
            stack_frames > 0 AND c.kind = 'operator' AND (
                coalesce(c.fwd_thread_id, 0) > 0 AND NOT starts_with(c.name, 'autograd::engine::')
                OR c.name = 'torch::autograd::AccumulateGrad'
            ) AS is_backward
        FROM lib._called_events(runs, ranks, false, false) AS c
        JOIN lanes AS l ON l.run = c.run AND l.rank = c.rank
    ),
    -- Calls excluded from the tree, with the parent that adopts their children.
    left_out AS MATERIALIZED (
        SELECT c.call_id, c.parent_id FROM calls AS c WHERE c.is_dropped OR c.is_async
    ),
    lifted AS (
        SELECT o.call_id, o.parent_id FROM left_out AS o
        UNION ALL
        SELECT l.call_id, o.parent_id FROM lifted AS l JOIN left_out AS o ON o.call_id = l.parent_id
    ),
    above AS MATERIALIZED (
        SELECT l.call_id, l.parent_id FROM lifted AS l ANTI JOIN left_out AS o ON o.call_id = l.parent_id
    ),
    edges AS NOT MATERIALIZED (
        SELECT c.call_id, CASE WHEN v.call_id IS NULL THEN c.parent_id ELSE v.parent_id END AS parent_id, c.dur, c.name_hash
        FROM calls AS c
        LEFT JOIN above AS v ON v.call_id = c.parent_id
        WHERE NOT c.is_dropped AND NOT c.is_async AND c.parent_id IS NOT NULL
    ),
    seen AS NOT MATERIALIZED (
        SELECT c.call_id, c.lane, c.ts, c.dur FROM calls AS c WHERE NOT c.is_dropped
    ),
    allocating AS MATERIALIZED (
        SELECT m.call_id, m.host_bytes, m.device_bytes FROM lib._memory_inside('seen', 'lanes') AS m
    ),
    kernels AS (
        SELECT DISTINCT g.name
        FROM gpu_ops AS g
        WHERE g.kind = 'kernel' AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    told AS MATERIALIZED (
        SELECT t.name, t.uses_tensor_cores FROM lib.tensor_core_names('kernels') AS t
    ),
    launching AS MATERIALIZED (
        SELECT d.* FROM lib._device_time_inside('calls', 'lanes', 'told') AS d
    ),
    children AS MATERIALIZED (
        SELECT
            e.parent_id, count(*) AS child_count, min(e.call_id) AS first_id, min(e.name_hash) AS first_name_hash, sum(e.dur)::BIGINT AS dur,
            sum(m.host_bytes)::BIGINT AS host_bytes, sum(m.device_bytes)::BIGINT AS device_bytes
        FROM edges AS e
        LEFT JOIN allocating AS m ON m.call_id = e.call_id
        WHERE e.parent_id IS NOT NULL
        GROUP BY e.parent_id
    ),
    -- An only child with its parent's name is merged into the parent, based on the tree before merging.
    merged AS MATERIALIZED (
        SELECT h.first_id AS call_id, h.parent_id
        FROM children AS h
        JOIN calls AS p ON p.call_id = h.parent_id AND p.name_hash = h.first_name_hash
        WHERE h.child_count = 1
    ),
    merging AS (
        SELECT m.call_id, m.parent_id FROM merged AS m
        UNION ALL
        SELECT g.call_id, m.parent_id FROM merging AS g JOIN merged AS m ON m.call_id = g.parent_id
    ),
    kept AS MATERIALIZED (
        SELECT g.call_id, g.parent_id AS kept_id FROM merging AS g ANTI JOIN merged AS m ON m.call_id = g.parent_id
    ),
    backward AS (
        SELECT c.call_id, c.call_id AS root_id FROM calls AS c WHERE c.is_backward
        UNION ALL
        SELECT e.call_id, b.root_id
        FROM backward AS b
        JOIN edges AS e ON e.parent_id = b.call_id
        ANTI JOIN (SELECT c.call_id FROM calls AS c WHERE c.is_backward) AS o ON o.call_id = e.call_id
    ),
    framed AS MATERIALIZED (
        SELECT i.* FROM lib._innermost_frames(runs, ranks, CASE WHEN like_torch THEN 0 ELSE stack_frames END) AS i
    ),
    keyed AS NOT MATERIALIZED (
        SELECT
            c.run, c.rank, l.lane, l.remembers, l.lane + c.event_id AS call_id, c.kind, c.ts, c.dur, c.step, c.in_last_step,
            c.pid, c.tid, c.module_id, c.sequence_number, c.fwd_thread_id,
            lib.op_base_name(c.name) AS name,
            CASE
                WHEN NOT by_overload THEN NULL
                WHEN c.kind = 'operator' AND contains(c.name, '.') THEN regexp_extract(c.name, '^\w+::\w+\.(\w+)$', 1)
                ELSE ''
            END AS overload_name,
            CASE WHEN by_shapes THEN lib._counted_shapes(c.input_dims, c.input_types) END AS input_shapes,
            CASE WHEN by_dtype THEN c.input_types END AS input_types,
            CASE
                WHEN stack_frames <= 0 THEN NULL
                WHEN c.call_stack IS NULL AND NOT like_torch THEN coalesce(f.frames, [])
                ELSE lib.counted_stack(c.call_stack)[:stack_frames]
            END AS stack,
            CASE
                WHEN c.kind = 'operator' AND l.counts_flops THEN
                    lib._operator_flops(lib.op_base_name(c.name), c.input_dims, c.concrete_inputs)
            END AS flops
        FROM lib._called_events(runs, ranks, true, stack_frames > 0) AS c
        JOIN lanes AS l ON l.run = c.run AND l.rank = c.rank
        LEFT JOIN framed AS f ON f.run = c.run AND f.rank = c.rank AND f.stack_id = c.stack_id
        ANTI JOIN (SELECT d.call_id FROM calls AS d WHERE d.is_dropped) AS n ON n.call_id = l.lane + c.event_id
    ),
    -- For each sequence number, calls in the backward pass get the stack of the first call outside the backward pass.
    forward_stacks AS MATERIALIZED (
        SELECT k.lane, lib.span_of(k.call_id - k.lane) AS span, k.sequence_number, arg_min(k.stack, (k.ts, -k.dur, k.call_id)) AS stack
        FROM keyed AS k
        ANTI JOIN backward AS b ON b.call_id = k.call_id
        ANTI JOIN kept AS m ON m.call_id = k.call_id
        WHERE stack_frames > 0 AND k.sequence_number >= 0
        GROUP BY k.lane, lib.span_of(k.call_id - k.lane), k.sequence_number
    ),
    backward_stacks AS MATERIALIZED (
        SELECT b.call_id, CASE WHEN k.fwd_thread_id > 0 THEN coalesce(f.stack, []) ELSE [] END AS stack
        FROM backward AS b
        JOIN keyed AS k ON k.call_id = b.root_id
        LEFT JOIN forward_stacks AS f ON f.lane = k.lane AND f.span = lib.span_of(k.call_id - k.lane) AND f.sequence_number = k.sequence_number
        WHERE stack_frames > 0
    ),
    -- Grouping keys of the few calls into which other calls were merged.
    heirs AS MATERIALIZED (
        SELECT k.call_id, k.overload_name, k.input_shapes, k.input_types, coalesce(b.stack, k.stack) AS stack
        FROM keyed AS k
        SEMI JOIN kept AS m ON m.kept_id = k.call_id
        LEFT JOIN backward_stacks AS b ON b.call_id = k.call_id
    ),
    modules AS (
        SELECT p.run, p.rank, p.event_id, p.name FROM python_calls AS p WHERE by_module AND starts_with(p.name, 'nn.Module: ')
    ),
    host_rows AS NOT MATERIALIZED (
        SELECT
            k.run, k.rank, k.name, 'host' AS side, k.kind = 'annotation' AS is_user_annotation,
            like_torch OR k.kind IN ('operator', 'annotation') AS is_shown, true AS is_counted,
            CASE WHEN m.call_id IS NULL THEN k.overload_name ELSE h.overload_name END AS overload_name,
            CASE WHEN m.call_id IS NULL THEN k.input_shapes ELSE h.input_shapes END AS input_shapes,
            CASE WHEN m.call_id IS NULL THEN k.input_types ELSE h.input_types END AS input_types,
            CASE WHEN m.call_id IS NULL THEN coalesce(b.stack, k.stack) ELSE h.stack END AS stack,
            o.name AS module, k.pid, k.tid, k.step, k.in_last_step, k.ts, k.dur AS length, k.call_id,
            m.call_id IS NULL AS is_kept,
            k.dur - CASE WHEN k.kind = 'annotation' AND starts_with(k.name, 'gloo:') THEN k.dur ELSE coalesce(c.dur, 0) END AS host_self_ns,
            k.dur AS host_total_ns,
            coalesce(d.self_ns, 0) AS device_self_ns,
            coalesce(d.total_ns, 0) AS device_total_ns,
            coalesce(d.tensor_ns, 0) AS tensor_ns,
            coalesce(d.unknown_ns, 0) AS unknown_ns,
            CASE WHEN k.remembers THEN coalesce(a.host_bytes, 0) END AS host_total_bytes,
            CASE WHEN k.remembers THEN coalesce(a.device_bytes, 0) END AS device_total_bytes,
            CASE
                WHEN k.kind = 'annotation' AND starts_with(k.name, 'gloo:') THEN host_total_bytes
                ELSE coalesce(c.host_bytes, 0)
            END AS host_inner_bytes,
            CASE
                WHEN k.kind = 'annotation' AND starts_with(k.name, 'gloo:') THEN device_total_bytes
                ELSE coalesce(c.device_bytes, 0)
            END AS device_inner_bytes,
            k.flops
        FROM keyed AS k
        LEFT JOIN children AS c ON c.parent_id = k.call_id
        LEFT JOIN allocating AS a ON a.call_id = k.call_id
        LEFT JOIN launching AS d ON d.call_id = k.call_id
        LEFT JOIN kept AS m ON m.call_id = k.call_id
        LEFT JOIN heirs AS h ON h.call_id = m.kept_id
        LEFT JOIN backward_stacks AS b ON b.call_id = k.call_id
        LEFT JOIN modules AS o ON o.run = k.run AND o.rank = k.rank AND o.event_id = k.module_id
    ),
    -- Latest end among all calls, on any thread, that have started so far.
    covered AS (
        SELECT s.lane, s.ts, max(max(s.ts + s.dur)) OVER (PARTITION BY s.lane ORDER BY s.ts) AS until_ts
        FROM seen AS s
        SEMI JOIN (SELECT l.lane FROM lanes AS l WHERE l.remembers) AS r ON r.lane = s.lane
        GROUP BY s.lane, s.ts
    ),
    memory_rows AS (
        SELECT
            l.run, l.rank, '[memory]' AS name, 'host' AS side, false AS is_user_annotation, true AS is_shown, true AS is_counted,
            CASE WHEN by_overload THEN '' END AS overload_name,
            CASE WHEN by_shapes THEN '[]' END AS input_shapes,
            CASE WHEN stack_frames > 0 THEN []::VARCHAR[] END AS stack,
            m.pid, m.tid, m.step, m.in_last_step, m.ts, 0::BIGINT AS length, l.lane + m.event_id AS call_id, true AS is_kept,
            0::BIGINT AS host_self_ns, 0::BIGINT AS host_total_ns, 0::BIGINT AS device_self_ns, 0::BIGINT AS device_total_ns,
            0::BIGINT AS tensor_ns, 0::BIGINT AS unknown_ns,
            CASE WHEN m.device_type = 0 THEN m.bytes ELSE 0 END AS host_total_bytes,
            CASE WHEN m.device_type <> 0 THEN m.bytes ELSE 0 END AS device_total_bytes,
            0::BIGINT AS host_inner_bytes, 0::BIGINT AS device_inner_bytes
        FROM memory_events AS m
        JOIN lanes AS l ON l.run = m.run AND l.rank = m.rank
        ASOF LEFT JOIN covered AS v ON v.lane = l.lane AND m.ts >= v.ts
        WHERE m.ts > coalesce(v.until_ts, m.ts - 1)
    ),
    on_device AS (
        SELECT
            g.run, g.rank, g.event_id, g.name, g.kind = 'kernel' AS is_kernel, false AS is_user_annotation,
            g.launch_id IS NULL OR g.op_id IS NULL AS is_unowned, g.ts, g.dur, g.step, g.in_last_step
        FROM gpu_ops AS g
        WHERE g.class <> 'sync' AND NOT g.is_suspect
        UNION ALL
        SELECT a.run, a.rank, a.event_id, lib.op_base_name(a.name), true, true, false, a.ts, a.dur, a.step, a.in_last_step
        FROM annotations AS a
        WHERE a.on_gpu AND like_torch
    ),
    device_rows AS (
        SELECT
            l.run, l.rank, CASE WHEN like_torch OR NOT g.is_unowned THEN g.name ELSE coalesce(u.label, '[no operator]') END AS name,
            'device' AS side, g.is_user_annotation, like_torch OR g.is_unowned AS is_shown, NOT g.is_user_annotation AS is_counted,
            u.match_method,
            CASE WHEN by_overload THEN '' END AS overload_name,
            CASE WHEN by_shapes THEN coalesce(lib._counted_shapes(u.input_dims, u.input_types), '[]') END AS input_shapes,
            CASE WHEN by_dtype THEN u.input_types END AS input_types,
            CASE WHEN stack_frames > 0 THEN CASE WHEN u.captured_frame IS NULL THEN []::VARCHAR[] ELSE [u.captured_frame] END END AS stack,
            CASE WHEN u.module_path IS NOT NULL THEN 'nn.Module: ' || string_split(u.module_path, '/')[-1] END AS module,
            g.step, g.in_last_step, g.ts, g.dur AS length, l.lane + g.event_id AS call_id, true AS is_kept,
            0::BIGINT AS host_self_ns, 0::BIGINT AS host_total_ns, g.dur AS device_self_ns, g.dur AS device_total_ns,
            CASE WHEN t.uses_tensor_cores THEN g.dur ELSE 0 END AS tensor_ns,
            CASE WHEN g.is_kernel AND t.uses_tensor_cores IS NULL THEN g.dur ELSE 0 END AS unknown_ns,
            CASE WHEN l.remembers THEN 0 END::BIGINT AS host_total_bytes,
            CASE WHEN l.remembers THEN 0 END::BIGINT AS device_total_bytes,
            0::BIGINT AS host_inner_bytes, 0::BIGINT AS device_inner_bytes
        FROM on_device AS g
        JOIN lanes AS l ON l.run = g.run AND l.rank = g.rank
        LEFT JOIN told AS t ON t.name = g.name AND g.is_kernel AND NOT g.is_user_annotation
        LEFT JOIN lib.unowned_gpu_ops(runs, ranks) AS u ON NOT like_torch AND u.run = g.run AND u.rank = g.rank AND u.event_id = g.event_id
    ),
    rows AS NOT MATERIALIZED (
        SELECT h.* FROM host_rows AS h
        UNION ALL BY NAME
        SELECT m.* FROM memory_rows AS m
        UNION ALL BY NAME
        SELECT d.* FROM device_rows AS d
    ),
    summed AS (
        SELECT
            r.run, r.rank, r.name, r.side, r.match_method, r.is_user_annotation, r.is_shown, r.is_counted,
            r.overload_name, r.input_shapes, r.input_types, r.stack,
            CASE WHEN by_module THEN r.module END AS module,
            CASE WHEN by_thread THEN r.pid END AS pid,
            CASE WHEN by_thread THEN r.tid END AS tid,
            CASE WHEN by_step THEN r.step END AS step,
            count_if(r.is_kept)::BIGINT AS call_count,
            sum(r.host_self_ns)::BIGINT AS host_self_ns,
            coalesce(sum(r.host_total_ns) FILTER (r.is_kept), 0)::BIGINT AS host_total_ns,
            sum(r.device_self_ns)::BIGINT AS device_self_ns,
            coalesce(sum(r.device_total_ns) FILTER (r.is_kept), 0)::BIGINT AS device_total_ns,
            sum(r.tensor_ns)::BIGINT AS tensor_ns,
            sum(r.unknown_ns)::BIGINT AS unknown_ns,
            sum(r.host_total_bytes - r.host_inner_bytes)::BIGINT AS host_self_bytes,
            (sum(r.host_total_bytes) FILTER (r.is_kept))::BIGINT AS host_total_bytes,
            sum(r.device_total_bytes - r.device_inner_bytes)::BIGINT AS device_self_bytes,
            (sum(r.device_total_bytes) FILTER (r.is_kept))::BIGINT AS device_total_bytes,
            TRY_CAST(sum(r.flops) FILTER (r.is_kept) AS BIGINT) AS flops,
            min(CASE WHEN like_torch THEN (r.ts, -r.length, r.call_id) END) AS first_call
        FROM rows AS r
        WHERE lib.is_requested(steps, r.step) AND (include_last_profiler_step OR NOT coalesce(r.in_last_step, false))
        GROUP BY ALL
    ),
    shares AS (
        SELECT
            s.*,
            sum(s.host_self_ns) OVER of_rank AS host_ns,
            sum(CASE WHEN s.side = 'device' AND s.is_counted THEN s.device_self_ns ELSE 0 END) OVER of_rank AS device_ns
        FROM summed AS s
        WINDOW of_rank AS (PARTITION BY s.run, s.rank)
    )
SELECT
    s.run,
    s.rank,
    s.name,
    s.side,
    s.match_method,
    s.is_user_annotation,
    s.overload_name,
    s.input_shapes,
    s.input_types,
    CASE WHEN stack_frames > 0 THEN to_json(s.stack)::VARCHAR END AS stack,
    s.module,
    s.pid,
    s.tid,
    s.step,
    s.call_count,
    s.host_self_ns,
    s.host_total_ns,
    CASE WHEN l.has_device THEN s.device_self_ns END AS device_self_ns,
    CASE WHEN l.has_device THEN s.device_total_ns END AS device_total_ns,
    s.host_self_bytes,
    s.host_total_bytes,
    s.device_self_bytes,
    s.device_total_bytes,
    s.flops,
    100 * (s.host_self_ns / nullif(s.host_ns, 0)) AS host_self_pct,
    100 * (s.host_total_ns / nullif(s.host_ns, 0)) AS host_total_pct,
    100 * (s.device_self_ns / nullif(s.device_ns, 0)) AS device_self_pct,
    100 * (s.device_total_ns / nullif(s.device_ns, 0)) AS device_total_pct,
    CASE WHEN s.unknown_ns < s.device_self_ns THEN 100 * (s.tensor_ns / s.device_self_ns) END AS tensor_core_pct,
    100 * (s.unknown_ns / nullif(s.device_self_ns, 0)) AS tensor_core_unknown_pct,
    CASE WHEN like_torch THEN row_number() OVER (PARTITION BY s.run, s.rank ORDER BY s.first_call) END AS position
FROM shares AS s
JOIN lanes AS l ON l.run = s.run AND l.rank = s.rank
WHERE s.is_shown
ORDER BY
    s.run, s.rank, position, s.device_self_ns DESC, s.host_self_ns DESC, s.name, s.is_user_annotation, s.overload_name,
    s.input_shapes, s.input_types, s.stack, s.module, s.pid, s.tid, s.step, s.match_method
