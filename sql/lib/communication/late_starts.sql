-- Start of each rank, step by step, in the collective that shows stragglers best.
--
-- In each step, communication kernels with the same name and channel are numbered from the end of the step, so
-- kernels with equal numbers correspond. The analysis uses the kernel whose durations differ most between the ranks
-- of a step, on average over the steps. This kernel must last at least min_share of the mean step duration on at
-- least one rank. All ranks end a collective together, so the rank that starts it last delays the others. If no two
-- ranks share a kernel that long, shorter kernels are used. A channel is the process group if the trace names it,
-- otherwise the stream. A run without profiler steps is one step.
CREATE OR REPLACE MACRO lib.late_starts(
    runs,
    ranks,
    -- Profiler steps to include; NULL means every step.
    steps,
    include_last_profiler_step,
    -- Minimum kernel duration as a share of the mean step duration.
    min_share,
    -- Whether to use only the last long kernel of each rank and step.
    last_only
) AS TABLE
-- Columns:
--   run       VARCHAR      Run name.
--   rank      INTEGER      Rank of the process.
--   step      BIGINT       Profiler step; NULL in a run without steps.
--   device    BIGINT       Device number.
--   stream    BIGINT       Device stream.
--   channel   VARCHAR      Process group or stream; two numbers if ranks number streams differently.
--   name      VARCHAR      Kernel name.
--   event_id  BIGINT       event_id of the kernel.
--   ts        BIGINT [ns]  Start of the kernel.
--   dur       BIGINT [ns]  Duration of the kernel.
--   first_ts  BIGINT [ns]  Start of the first event of the steps, over all ranks.
--   mean_dur  DOUBLE [ns]  Mean duration of a step.
--   is_long   BOOLEAN      Whether kernels of at least min_share were found; false if shorter kernels were used.
WITH
    _steps AS (
        SELECT s.*
        FROM steps AS s
        JOIN rank_spans AS k ON k.run = s.run AND k.rank = s.rank AND k.span = s.span
        WHERE
            lib.is_requested(runs, s.run)
            AND lib.is_requested(ranks, s.rank)
            AND lib.is_requested(steps, s.step)
            AND (include_last_profiler_step OR NOT (s.is_last AND k.drops_last_step))
    ),
    _stepped AS (
        SELECT DISTINCT s.run
        FROM steps AS s
    ),
    _ops AS (
        SELECT g.*
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        LEFT JOIN _stepped AS t ON t.run = g.run
        WHERE t.run IS NULL OR g.step IS NOT NULL
    ),
    _host AS (
        SELECT c.run, c.span, c.ts, c.dur, c.step
        FROM cpu_ops AS c
        LEFT JOIN _stepped AS t ON t.run = c.run
        WHERE
            (t.run IS NULL OR c.step IS NOT NULL)
            AND lib.is_requested(runs, c.run)
            AND lib.is_requested(ranks, c.rank)
            AND lib.is_requested(steps, c.step)
            AND (include_last_profiler_step OR NOT c.in_last_step)
    ),
    _spans AS (
        SELECT s.run, s.span, min(s.ts) AS first_ts, max(s.ts + s.dur) AS last_end FROM _steps AS s GROUP BY s.run, s.span
        UNION ALL
        SELECT o.run, o.span, min(o.ts), max(o.ts + o.dur) FROM _ops AS o GROUP BY o.run, o.span
        UNION ALL
        SELECT h.run, h.span, min(h.ts), max(h.ts + h.dur) FROM _host AS h GROUP BY h.run, h.span
    ),
    _extents AS (
        SELECT p.run, p.span, min(p.first_ts) AS first_ts, max(p.last_end) - min(p.first_ts) AS extent
        FROM _spans AS p
        GROUP BY p.run, p.span
    ),
    -- Times as if each recording began at the end of the previous one.
    _frames AS (
        SELECT
            x.run, x.span AS recording,
            x.first_ts - (sum(x.extent) OVER (PARTITION BY x.run ORDER BY x.span) - x.extent)::BIGINT AS first_ts,
            (sum(x.extent) OVER (PARTITION BY x.run))::BIGINT AS span,
            greatest(1, (SELECT count(DISTINCT s.step) FROM _steps AS s WHERE s.run = x.run)) AS step_count
        FROM _extents AS x
    ),
    _kernels AS (
        SELECT
            o.run, o.rank, o.step, o.device, o.stream,
            o.pg_name, o.name, o.event_id, o.ts, o.dur, f.first_ts, f.span, f.step_count
        FROM _ops AS o
        JOIN _frames AS f ON f.run = o.run AND f.recording = o.span
        WHERE o.class = 'communication' AND (NOT last_only OR o.dur * f.step_count >= min_share * f.span)
    ),
    -- Each process numbers its own streams: if all ranks run a kernel on the same number of streams, the n-th streams
    -- of the ranks correspond.
    _streams AS (
        SELECT
            k.run, k.rank, k.name, k.stream,
            row_number() OVER (PARTITION BY k.run, k.rank, k.name ORDER BY k.stream) AS nth,
            count(*) OVER (PARTITION BY k.run, k.rank, k.name) AS stream_count
        FROM _kernels AS k
        WHERE k.pg_name IS NULL AND k.stream IS NOT NULL
        GROUP BY k.run, k.rank, k.name, k.stream
    ),
    _matched AS (
        SELECT
            s.run, s.rank, s.name, s.stream,
            min(s.stream_count) OVER of_name = max(s.stream_count) OVER of_name AS is_even,
            min(s.stream) OVER of_nth AS low,
            max(s.stream) OVER of_nth AS high
        FROM _streams AS s
        WINDOW of_name AS (PARTITION BY s.run, s.name), of_nth AS (PARTITION BY s.run, s.name, s.nth)
    ),
    _channels AS (
        SELECT
            k.run, k.rank, k.step, k.device, k.stream,
            CASE
                WHEN k.pg_name IS NOT NULL THEN 'group ' || k.pg_name
                WHEN m.is_even AND m.low < m.high THEN 'stream ' || m.low || ' to ' || m.high
                ELSE coalesce('stream ' || k.stream, 'no stream')
            END AS channel,
            k.name, k.event_id, k.ts, k.dur, k.first_ts, k.span, k.step_count
        FROM _kernels AS k
        LEFT JOIN _matched AS m ON m.run = k.run AND m.rank = k.rank AND m.name = k.name AND m.stream = k.stream
    ),
    -- Kernels are counted from the end of the step, because the first kernels may have been launched in the previous
    -- step.
    _placed AS (
        SELECT
            k.*,
            row_number() OVER (
                PARTITION BY k.run, k.rank, k.step, k.channel, k.name ORDER BY k.ts DESC, k.event_id DESC
            ) AS position
        FROM _channels AS k
    ),
    -- The rank that starts last runs the kernel for a short time, so the kernel only has to be long on one rank.
    _last AS (
        SELECT
            p.*,
            p.span / p.step_count AS mean_dur,
            max(p.dur) OVER (PARTITION BY p.run, p.step, p.channel, p.name, p.position) * p.step_count >= min_share * p.span
                AS is_long
        FROM _placed AS p
        WHERE NOT last_only OR p.position = 1
    ),
    _spreads AS (
        SELECT
            l.run, l.channel, l.name, l.position, bool_or(l.is_long) AS is_long, l.step,
            lib.exact_std(l.dur) AS spread
        FROM _last AS l
        GROUP BY l.run, l.channel, l.name, l.position, l.step
        HAVING count(*) >= 2
    ),
    _chosen AS (
        SELECT p.run, p.channel, p.name, p.position, bool_or(p.is_long) AS is_long
        FROM _spreads AS p
        GROUP BY p.run, p.channel, p.name, p.position
        QUALIFY row_number() OVER (
            PARTITION BY p.run
            -- Summed in the order of the steps, because a floating-point sum depends on the order.
            ORDER BY
                bool_or(p.is_long) DESC,
                list_sum(list(p.spread ORDER BY p.step)) / count(*) DESC,
                p.channel, p.name, p.position
        ) = 1
    )
SELECT
    l.run, l.rank, l.step, l.device, l.stream, l.channel, l.name, l.event_id, l.ts, l.dur, l.first_ts, l.mean_dur, c.is_long
FROM _last AS l
JOIN _chosen AS c ON c.run = l.run AND c.channel = l.channel AND c.name = l.name AND c.position = l.position
