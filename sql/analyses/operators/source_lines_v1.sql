-- Host and device time by source line, given as a Python frame: file(line): function.
--
-- Self time of a frame is the time during which it is the innermost shown frame, including the operators, runtime
-- calls and hidden frames inside the frame. Total time adds the time of the frames that it called; a recursive frame
-- counts once. Device time is the duration of the operations launched during the self or total time, summed even if
-- they ran concurrently. Backward operators run on a thread without frames. Their operations are reported in the
-- backward columns, on the line of the forward operator. The row without a frame covers activity outside shown frames.
-- Over all rows of a rank, host_self_ns sums to all time in host events, and device_self_ns to the duration of all
-- device operations; a rank without frames has no rows. Frames come from the Python tracer or, if a trace has no such frames, from the stacks recorded with
-- operators; the time of Python itself is then missing. Kernels of a compiled graph belong to the line that calls the
-- graph. compiled_device_ns attributes these kernels to the model functions whose operators they compute.
--
-- Title: Most expensive source lines
-- Shown: rank, device_total_ns, device_self_pct, frame, device_self_ns, host_self_ns, call_count
-- Also: source code, python lines, line profile
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps, include_last_profiler_step; calls belong to the step in which they start
-- Reference: torch.profiler key_averages(group_by_stack_n), py-spy top
-- Needs: Python frames (with_stack)
-- Report: first 4; at most 64 ranks
-- Ranks: independent
-- Chart:
--   mark = "bars"
--   title = "Most expensive source lines"
--   notes = [
--     "Self time, summed over all ranks: time in a line, without the lines that it calls. Built-in functions count for their caller.",
--     "Device: operations launched by the line, and by the backward pass of its operators.",
--   ]
--   empty = "The traces have no Python frames. Profile with with_stack=True."
--   name = "frame"
--   measure = "Self time"
--   legend = "Time"
--   panels.device.device_self_ns = ["self", "neutral"]
--   panels.device.backward_device_self_ns = ["backward pass", "backward"]
--   panels.host.host_self_ns = ["self", "neutral"]
--   tooltip.call_count = "Calls"
CREATE OR REPLACE MACRO source_lines_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Frames to attribute to the calling line, as a regular expression; NULL: none.
    hidden VARCHAR := '^<built-in|^nn\.Module: ',
    -- Whether frames of PyTorch, of function wrappers (decorators) and of compiled graphs have rows too; otherwise
    -- they are attributed to the calling line.
    all_frames BOOLEAN := false
) AS TABLE
-- Columns:
--   run                       VARCHAR         Run name.
--   rank                      INTEGER         Rank of the process.
--   frame                     VARCHAR         file(line): function; NULL for activity outside shown frames.
--   file                      VARCHAR         Source file; NULL if the frame names none.
--   line                      BIGINT [1]      First line of the function.
--   function                  VARCHAR         Name of the function.
--   call_count                BIGINT [count]  Number of calls; NULL if frames come from operators.
--   host_self_ns              BIGINT [ns]     Host time excluding called frames.
--   host_total_ns             BIGINT [ns]     Host time including called frames.
--   device_self_ns            BIGINT [ns]     Duration of device operations launched by the frame itself; NULL for a rank without device activity, as the three columns below.
--   device_total_ns           BIGINT [ns]     Duration of device operations launched by the frame and the frames that it called.
--   backward_device_self_ns   BIGINT [ns]     Duration of device operations launched by the backward pass of the frame's own operators; device_self_ns of other rows includes these operations.
--   backward_device_total_ns  BIGINT [ns]     backward_device_self_ns of the frame and its callees.
--   compiled_device_ns        BIGINT [ns]     Duration of compiled kernels that compute operators of the function. A kernel counts in full for each of its functions, and in device_self_ns of the line that launches it. NULL without kernel sources (lib.kernel_source_frames).
--   host_self_pct             DOUBLE [%]      host_self_ns as a share of all time in host events.
--   device_self_pct           DOUBLE [%]      device_self_ns as a share of the total duration of all device operations.
WITH
    costs AS MATERIALIZED (
        SELECT c.*, row_number() OVER (ORDER BY c.run, c.rank, c.beginnings[-1]) AS chain
        FROM lib.costs_by_path(
            runs, ranks, steps, include_last_profiler_step, ['frame', 'module'],
            -- If nothing is hidden, the pattern must be NULL, because an empty pattern matches every name.
            nullif(concat_ws('|', nullif(hidden, ''), CASE WHEN NOT all_frames THEN
                '(^|/)torch/.*\(\d+\): |(^|/)(contextlib|functools)\.py\(|: _?(wrapper|wrapped|decorated|decorate_context)$|torchinductor_|^<eval_with_key>'
            END), '')
        ) AS c
    ),
    traced AS (
        SELECT DISTINCT p.run, p.rank FROM python_calls AS p WHERE lib.is_requested(runs, p.run) AND lib.is_requested(ranks, p.rank)
    ),
    own AS (
        SELECT
            c.run, c.rank, c.path[-1] AS name_hash, sum(c.call_count)::BIGINT AS call_count, sum(c.host_ns)::BIGINT AS host_ns,
            sum(c.device_ns)::BIGINT AS device_ns, sum(c.backward_ns)::BIGINT AS backward_ns
        FROM costs AS c
        GROUP BY ALL
    ),
    -- Count each name of a chain once.
    members AS (
        SELECT c.chain, unnest(list_distinct(c.path)) AS name_hash
        FROM costs AS c
    ),
    whole AS (
        SELECT
            c.run, c.rank, m.name_hash, sum(c.host_ns)::BIGINT AS host_ns, sum(c.device_ns)::BIGINT AS device_ns,
            sum(c.backward_ns)::BIGINT AS backward_ns
        FROM members AS m
        JOIN costs AS c ON c.chain = m.chain
        GROUP BY ALL
    ),
    -- A frame that is never innermost has no self time; activity outside frames has only self time.
    lines AS (
        SELECT
            coalesce(w.run, o.run) AS run, coalesce(w.rank, o.rank) AS rank, coalesce(w.name_hash, o.name_hash) AS name_hash,
            coalesce(o.call_count, 0) AS call_count,
            coalesce(o.host_ns, 0) AS host_self_ns, coalesce(w.host_ns, o.host_ns) AS host_total_ns,
            coalesce(o.device_ns, 0) AS device_self_ns, coalesce(w.device_ns, o.device_ns) AS device_total_ns,
            coalesce(o.backward_ns, 0) AS backward_device_self_ns, coalesce(w.backward_ns, o.backward_ns) AS backward_device_total_ns
        FROM whole AS w
        FULL JOIN own AS o ON o.run = w.run AND o.rank = w.rank AND o.name_hash = w.name_hash
    ),
    shares AS (
        SELECT
            l.*, sum(l.host_self_ns) OVER (PARTITION BY l.run, l.rank) AS host_ns,
            sum(l.device_self_ns) OVER (PARTITION BY l.run, l.rank) AS device_ns
        FROM lines AS l
    ),
    named AS MATERIALIZED (
        SELECT
            s.*, n.name AS frame,
            nullif(regexp_extract(n.name, '^(.+)\(\d+\): ', 1), '') AS file,
            TRY_CAST(regexp_extract(n.name, '\((\d+)\): ', 1) AS BIGINT) AS line,
            nullif(regexp_extract(n.name, '\(\d+\): (.*)$', 1), '') AS function
        FROM shares AS s
        LEFT JOIN lib.path_names(runs, ranks) AS n ON n.name_hash = s.name_hash
    ),
    sources AS MATERIALIZED (
        SELECT k.run, k.rank, k.name, k.file, k.line, k.function
        FROM lib.kernel_source_frames(runs, ranks) AS k
        WHERE k.function IS NOT NULL
        GROUP BY ALL
    ),
    kernels AS (
        SELECT g.run, g.rank, g.name, sum(g.dur)::BIGINT AS device_ns
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        SEMI JOIN sources AS o ON o.run = g.run AND o.rank = g.rank AND o.name = g.name
        WHERE g.kind = 'kernel'
        GROUP BY ALL
    ),
    -- The profiler shortens paths. If a file has several functions of the same name, a line belongs to the last of
    -- these functions that starts at or above the line.
    functions AS (
        SELECT o.run, o.rank, o.name, arg_max(n.frame, (len(n.file), n.line, n.frame)) AS frame
        FROM sources AS o
        JOIN named AS n ON
            n.run = o.run AND n.rank = o.rank AND n.function = o.function AND n.line <= o.line
            AND (n.file = o.file OR ends_with(o.file, '/' || n.file))
        GROUP BY o.run, o.rank, o.name, o.file, o.line, o.function
    ),
    compiled AS (
        SELECT f.run, f.rank, f.frame, sum(k.device_ns)::BIGINT AS device_ns
        FROM (SELECT DISTINCT f.* FROM functions AS f) AS f
        JOIN kernels AS k ON k.run = f.run AND k.rank = f.rank AND k.name = f.name
        GROUP BY f.run, f.rank, f.frame
    )
SELECT
    s.run,
    s.rank,
    s.frame,
    s.file,
    s.line,
    s.function,
    CASE WHEN t.run IS NOT NULL AND s.frame IS NOT NULL THEN s.call_count END AS call_count,
    s.host_self_ns,
    s.host_total_ns,
    CASE WHEN d.run IS NOT NULL THEN s.device_self_ns END AS device_self_ns,
    CASE WHEN d.run IS NOT NULL THEN s.device_total_ns END AS device_total_ns,
    CASE WHEN d.run IS NOT NULL THEN s.backward_device_self_ns END AS backward_device_self_ns,
    CASE WHEN d.run IS NOT NULL THEN s.backward_device_total_ns END AS backward_device_total_ns,
    c.device_ns AS compiled_device_ns,
    100 * (s.host_self_ns / nullif(s.host_ns, 0)) AS host_self_pct,
    100 * (s.device_self_ns / nullif(s.device_ns, 0)) AS device_self_pct
FROM named AS s
LEFT JOIN traced AS t ON t.run = s.run AND t.rank = s.rank
LEFT JOIN lib.device_ranks(runs, ranks) AS d ON d.run = s.run AND d.rank = s.rank
LEFT JOIN compiled AS c ON c.run = s.run AND c.rank = s.rank AND c.frame = s.frame
WHERE s.host_total_ns <> 0 OR s.device_total_ns <> 0 OR s.backward_device_total_ns <> 0 OR s.call_count > 0
-- Without frames there are no lines, and the remaining row would only state that 100 % lies outside of them.
QUALIFY bool_or(s.frame IS NOT NULL) OVER (PARTITION BY s.run, s.rank)
ORDER BY s.run, s.rank, s.device_self_ns DESC, s.host_self_ns DESC, s.frame
