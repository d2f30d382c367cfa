-- Traces that break a rule of PyTorch's own validator: times, waits, metadata or numbers that contradict each other.
--
-- The rules are those of torch.profiler._trace_validator (PyTorch 2.14), with two differences: kernels are linked to
-- their launches as everywhere here, and sequence numbers are compared per forward thread, because each thread counts
-- its own.
CREATE OR REPLACE MACRO lib._trace_violations(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   rule             VARCHAR         kernels_before_launch, waits_without_record, waits_before_record, syncs_before_kernels, collectives_without_metadata or sequence_numbers_shared.
--   violation_count  BIGINT [count]  Number of events that break the rule.
--   checked_count    BIGINT [count]  Number of events that the rule is about.
--   worst_ns         BIGINT [ns]     Largest contradiction of times; NULL for other rules.
--   example          VARCHAR         Name of one of the events.
WITH
    _ops AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.span, g.event_id, g.kind, g.name, g.device, g.stream, g.ts, g.ts + g.dur AS end_ts, g.launch_ts,
            g.sync_kind, g.wait_on_record_correlation AS record_id
        FROM gpu_ops AS g
        WHERE
            lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank) AND NOT g.is_suspect
            AND (g.kind IN ('kernel', 'sync'))
    ),
    _waits AS (
        SELECT o.* FROM _ops AS o WHERE o.sync_kind IN ('Stream Wait Event', 'Event Sync')
    ),
    _recorded AS (
        SELECT c.run, c.rank, c.span, c.ts, unnest([c.correlation, c.external_id]) AS record_id
        FROM runtime_calls AS c
        SEMI JOIN _waits AS w ON w.run = c.run AND w.rank = c.rank
        WHERE starts_with(c.name, 'cudaEventRecord')
    ),
    _records AS (
        SELECT r.run, r.rank, r.span, r.record_id, min(r.ts) AS ts
        FROM _recorded AS r
        WHERE r.record_id IS NOT NULL
        GROUP BY r.run, r.rank, r.span, r.record_id
    ),
    -- Only streams that the host synchronizes with.
    _synced AS (
        SELECT
            o.*,
            max(CASE WHEN o.kind = 'kernel' THEN o.end_ts END) OVER (
                PARTITION BY o.run, o.rank, o.span, o.device, o.stream
                ORDER BY o.ts
                RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) AS busy_until
        FROM _ops AS o
        SEMI JOIN _ops AS s ON s.run = o.run AND s.rank = o.rank AND s.span = o.span AND s.device = o.device AND s.stream = o.stream AND s.sync_kind = 'Stream Sync'
    ),
    _described AS (
        SELECT
            c.run, c.rank, c.name,
            c.collective IS NULL OR c.elem_type IS NULL OR c.in_elems IS NULL OR c.out_elems IS NULL OR c.group_size IS NULL AS is_bare
        FROM cpu_ops AS c
        WHERE c.name = 'record_param_comms' AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
    ),
    _numbered AS (
        SELECT c.run, c.rank, c.span, c.fwd_thread_id, c.sequence_number, count(DISTINCT c.name) AS name_count, min(c.name) AS name
        FROM cpu_ops AS c
        WHERE
            starts_with(c.name, 'autograd::engine::evaluate_function: ') AND c.sequence_number > 0
            AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        GROUP BY c.run, c.rank, c.span, c.fwd_thread_id, c.sequence_number
    ),
    _checked AS (
        SELECT
            o.run, o.rank, 'kernels_before_launch' AS rule, o.ts < o.launch_ts AS is_broken, (o.launch_ts - o.ts)::BIGINT AS by_ns, o.name
        FROM _ops AS o
        WHERE o.kind = 'kernel' AND o.launch_ts IS NOT NULL
        UNION ALL
        SELECT w.run, w.rank, 'waits_without_record', coalesce(w.record_id, -1) < 0, NULL, w.sync_kind
        FROM _waits AS w
        UNION ALL
        SELECT w.run, w.rank, 'waits_before_record', r.ts IS NULL OR r.ts > w.ts, (r.ts - w.ts)::BIGINT, w.sync_kind
        FROM _waits AS w
        LEFT JOIN _records AS r ON r.run = w.run AND r.rank = w.rank AND r.span = w.span AND r.record_id = w.record_id
        WHERE w.sync_kind = 'Stream Wait Event' AND w.record_id >= 0
        UNION ALL
        SELECT s.run, s.rank, 'syncs_before_kernels', coalesce(s.busy_until > s.ts, false), (s.busy_until - s.ts)::BIGINT, s.sync_kind
        FROM _synced AS s
        WHERE s.sync_kind = 'Stream Sync'
        UNION ALL
        SELECT d.run, d.rank, 'collectives_without_metadata', d.is_bare, NULL, d.name
        FROM _described AS d
        UNION ALL
        SELECT n.run, n.rank, 'sequence_numbers_shared', n.name_count > 1, NULL, n.name
        FROM _numbered AS n
    )
SELECT
    c.run AS run, c.rank AS rank, c.rule AS rule,
    count_if(c.is_broken)::BIGINT AS violation_count,
    count(*) AS checked_count,
    max(c.by_ns) FILTER (c.is_broken) AS worst_ns,
    min(c.name) FILTER (c.is_broken) AS example
FROM _checked AS c
GROUP BY c.run, c.rank, c.rule
HAVING count_if(c.is_broken) > 0
