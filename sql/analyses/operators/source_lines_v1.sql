-- Time by source line: each Python frame, file(line): function, with what it costs on the host and on the device.
--
-- Self is the time while the frame is the innermost one that is shown: what operators, runtime calls and frames that
-- are not shown do there counts for it. Total adds the frames that it called; a frame that calls itself counts once.
-- Device time is that of the operations launched meanwhile, added up also where they ran side by side. Operators of the
-- backward pass run on a thread without frames: what they launch is named beside, under the line of the forward
-- operator. The row without a frame is what ran in none that is shown, so that host_self_ns and device_self_ns add up to
-- all time in host events and all device operations. Frames are those of the Python tracer; where a trace has none,
-- those that operators recorded, and then the time of Python itself is not in it.
--
-- Title: Source lines that cost most
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks, steps, include_last_profiler_step; calls belong to the step in which they start
-- Reference: torch.profiler key_averages(group_by_stack_n), py-spy top
-- Needs: Python frames (with_stack)
-- Report: first 4; at most 64 ranks
-- Ranks: independent
CREATE OR REPLACE MACRO source_lines_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps BIGINT[] := NULL,
    -- Whether to include the last profiler step of a run with two or more.
    include_last_profiler_step BOOLEAN := false,
    -- Frames that count for the line that called them, as a regular expression; NULL: none.
    hidden VARCHAR := '^<built-in|^nn\.Module: ',
    -- Whether frames of PyTorch, of wrappers around functions (decorators) and of the code of compiled graphs are lines too;
    -- else they count for the line that called them.
    all_frames BOOLEAN := false
) AS TABLE
-- Columns:
--   run                       VARCHAR         Run name.
--   rank                      INTEGER         Rank of the process.
--   frame                     VARCHAR         file(line): function; NULL for what ran in no frame that is shown.
--   file                      VARCHAR         File of it; NULL where the frame names none.
--   line                      BIGINT [1]      First line of the function.
--   function                  VARCHAR         Function.
--   call_count                BIGINT [count]  Calls; NULL where frames are those that operators recorded.
--   host_self_ns              BIGINT [ns]     Time on the host in it and in no frame that it called.
--   host_total_ns             BIGINT [ns]     Time on the host.
--   device_self_ns            BIGINT [ns]     Time of device operations launched in it and in no frame that it called.
--   device_total_ns           BIGINT [ns]     With those launched in what it called.
--   backward_device_self_ns   BIGINT [ns]     Time of device operations that the backward pass of its own operators launched; also in other rows.
--   backward_device_total_ns  BIGINT [ns]     With that of the frames that it called.
--   host_self_pct             DOUBLE [%]      host_self_ns as a share of all time in host events.
--   device_self_pct           DOUBLE [%]      device_self_ns as a share of all time of device operations.
WITH
    costs AS MATERIALIZED (
        SELECT c.*, row_number() OVER (ORDER BY c.run, c.rank, c.beginnings[-1]) AS chain
        FROM lib.costs_by_path(
            runs, ranks, steps, include_last_profiler_step, ['frame', 'module'],
            -- Nothing hidden is no pattern: the empty one matches every name.
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
    -- Each name of a chain once.
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
    -- A frame that is always between others has no time of itself; what ran in none has no frames inside.
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
    )
SELECT
    s.run,
    s.rank,
    n.name AS frame,
    nullif(regexp_extract(n.name, '^(.+)\(\d+\): ', 1), '') AS file,
    TRY_CAST(regexp_extract(n.name, '\((\d+)\): ', 1) AS BIGINT) AS line,
    nullif(regexp_extract(n.name, '\(\d+\): (.*)$', 1), '') AS function,
    CASE WHEN t.run IS NOT NULL AND n.name IS NOT NULL THEN s.call_count END AS call_count,
    s.host_self_ns,
    s.host_total_ns,
    s.device_self_ns,
    s.device_total_ns,
    s.backward_device_self_ns,
    s.backward_device_total_ns,
    100 * (s.host_self_ns / nullif(s.host_ns, 0)) AS host_self_pct,
    100 * (s.device_self_ns / nullif(s.device_ns, 0)) AS device_self_pct
FROM shares AS s
LEFT JOIN traced AS t ON t.run = s.run AND t.rank = s.rank
LEFT JOIN lib.path_names(runs, ranks) AS n ON n.name_hash = s.name_hash
WHERE s.host_total_ns <> 0 OR s.device_total_ns <> 0 OR s.backward_device_total_ns <> 0 OR s.call_count > 0
ORDER BY s.run, s.rank, s.device_self_ns DESC, s.host_self_ns DESC, frame
