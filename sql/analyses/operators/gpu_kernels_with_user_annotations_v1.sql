-- Each kernel, copy and memset with the user annotation to which it belongs.
--
-- The annotation is the innermost one that encloses the launch on the launching thread, not counting profiler steps.
-- If no annotation encloses the launch, or the launch is not in the trace, the annotation is the innermost span that
-- the profiler recorded around the operation on its stream, counting profiler steps. Spans from different threads can
-- partially overlap on a stream, so a match by launch is more reliable.
--
-- Title: Kernels with their user annotation
-- Shown: rank, annotation, dur_ns, short_name, class, stream, step, start_ns
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_gpu_kernels_with_user_annotations
-- Needs: GPU activity; without user annotations (record_function), the annotation columns are NULL
CREATE OR REPLACE MACRO gpu_kernels_with_user_annotations_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   event_id         BIGINT          Position of the operation in traceEvents.
--   name             VARCHAR         Name of the operation.
--   short_name       VARCHAR         Name without template arguments, parameters and return type.
--   kind             VARCHAR         Kind of operation: kernel, memcpy or memset.
--   class            VARCHAR         Class of the operation: computation, communication or memory.
--   device           BIGINT          Device number.
--   stream           BIGINT          Device stream.
--   correlation      BIGINT          Correlation id.
--   launch_id        BIGINT          event_id of the call that launched the operation; NULL if not in the trace.
--   step             BIGINT          Profiler step of the launch; NULL outside steps.
--   start_ns         BIGINT [ns]     Start, relative to the run's first event.
--   dur_ns           BIGINT [ns]     Duration.
--   annotation_id    BIGINT          event_id of the annotation; NULL if there is none.
--   annotation       VARCHAR         Name of the annotation.
--   annotation_path  VARCHAR         Names of all enclosing annotations, outermost first, joined by ' / '.
--   matched_by       VARCHAR         How the annotation was found: launch or span; NULL if there is none.
--   bytes            BIGINT [bytes]  Bytes copied or set.
--   bandwidth_gbps   DOUBLE [GB/s]   Recorded bandwidth.
--   external_id      BIGINT          External id of the operator that launched the operation.
WITH RECURSIVE
    ops AS (
        SELECT g.*
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
    ),
    ranges AS (
        SELECT a.run, a.rank, a.event_id, a.name, a.parent_annotation_id
        FROM annotations AS a
        WHERE lib.is_requested(runs, a.run) AND lib.is_requested(ranks, a.rank)
    ),
    -- Walk outward from each innermost annotation around a launch.
    climbing AS (
        SELECT r.run, r.rank, r.event_id, r.name AS annotation, r.name AS annotation_path, r.parent_annotation_id AS above_id
        FROM ranges AS r
        SEMI JOIN ops AS o ON o.run = r.run AND o.rank = r.rank AND o.annotation_id = r.event_id
        UNION ALL
        SELECT c.run, c.rank, c.event_id, c.annotation, r.name || ' / ' || c.annotation_path, r.parent_annotation_id
        FROM climbing AS c
        JOIN ranges AS r ON r.run = c.run AND r.rank = c.rank AND r.event_id = c.above_id
    ),
    by_launch AS (
        SELECT c.run, c.rank, c.event_id, c.annotation, c.annotation_path
        FROM climbing AS c
        WHERE c.above_id IS NULL
    ),
    outside AS (
        SELECT {'run': o.run, 'rank': o.rank, 'span': o.span, 'device': o.device, 'stream': o.stream} AS lane, o.event_id AS id, o.ts, o.dur
        FROM ops AS o
        WHERE o.annotation_id IS NULL
    ),
    spans AS (
        SELECT {'run': a.run, 'rank': a.rank, 'span': a.span, 'device': a.pid, 'stream': a.tid} AS lane, a.event_id AS id, a.ts, a.dur
        FROM annotations AS a
        WHERE
            a.on_gpu
            AND a.dur >= 0
            AND lib.is_requested(runs, a.run)
            AND lib.is_requested(ranks, a.rank)
    ),
    by_span AS (
        SELECT
            a.run,
            a.rank,
            e.inner_id AS event_id,
            arg_max(a.event_id, (e.outer_ts, -e.outer_dur, a.event_id)) AS annotation_id,
            arg_max(a.name, (e.outer_ts, -e.outer_dur, a.event_id)) AS annotation,
            string_agg(a.name, ' / ' ORDER BY e.outer_ts, e.outer_dur DESC, a.event_id) AS annotation_path
        FROM lib._enclosing_intervals('outside', 'spans') AS e
        JOIN annotations AS a ON a.run = e.lane.run AND a.rank = e.lane.rank AND a.event_id = e.outer_id
        GROUP BY a.run, a.rank, e.inner_id
    ),
    names AS (
        SELECT o.name FROM ops AS o
    )
SELECT
    o.run,
    o.rank,
    o.event_id,
    o.name,
    n.short_name,
    o.kind,
    o.class,
    o.device,
    o.stream,
    o.correlation,
    o.launch_id,
    o.step,
    o.ts AS start_ns,
    o.dur AS dur_ns,
    coalesce(o.annotation_id, s.annotation_id) AS annotation_id,
    coalesce(l.annotation, s.annotation) AS annotation,
    coalesce(l.annotation_path, s.annotation_path) AS annotation_path,
    CASE WHEN o.annotation_id IS NOT NULL THEN 'launch' WHEN s.annotation_id IS NOT NULL THEN 'span' END AS matched_by,
    o.bytes,
    o.bandwidth_gbps,
    o.external_id
FROM ops AS o
JOIN lib.short_names('names') AS n ON n.name = o.name
LEFT JOIN by_launch AS l ON l.run = o.run AND l.rank = o.rank AND l.event_id = o.annotation_id
LEFT JOIN by_span AS s ON s.run = o.run AND s.rank = o.rank AND s.event_id = o.event_id
ORDER BY o.run, o.rank, o.ts, o.event_id
