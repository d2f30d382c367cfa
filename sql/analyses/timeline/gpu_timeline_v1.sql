-- Operations on each device stream over time: the rows of a timeline chart.
--
-- One row per operation. If resolution_ns is set, adjacent operations of one stream and class form one row if the gap
-- between them is shorter than resolution_ns, which keeps the timeline of a whole job small. The row is named after
-- the longest operation. Times are relative to the first selected operation of the run. Synchronizations are excluded.
--
-- Title: Timeline of GPU streams
-- Shown: rank, stream, start_ns, end_ns, name, class, step, op_count
-- Status: stable
-- Since: 0.1
-- Reference: HTA prepare_timeline_gpu_events
-- Needs: GPU activity
-- Report: no
CREATE OR REPLACE MACRO gpu_timeline_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Device streams to include; NULL means every stream.
    streams BIGINT[] := NULL,
    -- Minimum duration of the operations to include [ns].
    min_duration_ns BIGINT := 0,
    -- Gap below which adjacent operations form one row [ns]; 0 means one row per operation.
    resolution_ns BIGINT := 0
) AS TABLE
-- Columns:
--   run       VARCHAR         Run name.
--   rank      INTEGER         Rank of the process.
--   device    BIGINT          Device number.
--   stream    BIGINT          Device stream.
--   start_ns  BIGINT [ns]     Start, relative to the first selected operation of the run.
--   end_ns    BIGINT [ns]     End, relative to the first selected operation of the run.
--   class     VARCHAR         Class of the operation: computation, communication or memory.
--   name      VARCHAR         Name of the longest operation.
--   event_id  BIGINT          event_id of the longest operation.
--   step      BIGINT          Profiler step of the longest operation; NULL outside steps.
--   op_count  BIGINT [count]  Number of operations in the row.
WITH
    ops AS (
        SELECT g.run, g.rank, g.span, g.device, g.stream, g.class, g.name, g.event_id, g.step, g.dur, g.ts - min(g.ts) OVER (PARTITION BY g.run) AS start_ns
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE lib.is_requested(streams, g.stream) AND g.dur >= min_duration_ns
    ),
    parted AS (
        SELECT
            o.*,
            coalesce(
                resolution_ns > 0
                AND lag(o.class) OVER lane = o.class
                AND o.start_ns - max(o.start_ns + o.dur) OVER (lane ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) < resolution_ns,
                false
            ) AS goes_on
        FROM ops AS o
        WINDOW lane AS (PARTITION BY o.run, o.rank, o.span, o.device, o.stream ORDER BY o.start_ns, o.dur, o.event_id)
    ),
    numbered AS (
        SELECT
            p.*,
            count_if(NOT p.goes_on) OVER (PARTITION BY p.run, p.rank, p.span, p.device, p.stream ORDER BY p.start_ns, p.dur, p.event_id ROWS UNBOUNDED PRECEDING) AS part
        FROM parted AS p
    ),
    rows_of_lanes AS (
        SELECT
            n.run,
            n.rank,
            n.span,
            n.device,
            n.stream,
            n.part,
            min(n.start_ns) AS start_ns,
            max(n.start_ns + n.dur) AS end_ns,
            any_value(n.class) AS class,
            arg_max({'name': n.name, 'id': n.event_id, 'step': n.step}, {'dur': n.dur, 'first': -n.event_id}) AS longest,
            count(*) AS op_count
        FROM numbered AS n
        GROUP BY n.run, n.rank, n.span, n.device, n.stream, n.part
    )
SELECT
    r.run,
    r.rank,
    r.device,
    r.stream,
    r.start_ns,
    r.end_ns,
    r.class,
    r.longest.name AS name,
    r.longest.id AS event_id,
    r.longest.step AS step,
    r.op_count
FROM rows_of_lanes AS r
ORDER BY r.run, r.rank, r.device, r.stream, r.span, r.part
