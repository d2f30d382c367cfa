-- Exposed communication of each process group, split by whether it blocks the critical path.
--
-- Exposed communication is defined as in process_group_costs: transfer and wait not overlapped by compute. Blocking
-- communication lies on the rank's critical path. The path is traced backwards from the last event; at each event, it
-- follows the dependency that ended last (edges of critical_path_edges, including inferred waits). Coincident
-- communication runs while the path is elsewhere, usually on the host; a faster network would not shorten this time.
-- For a kernel whose launch is out of scope, the position relative to the path is unknown. This position is unknown for
-- all kernels if the trace has no wait between streams (a cudaStreamWaitEvent call or its record). Time exposed only by
-- such kernels counts as unknown. The three parts sum exactly to the exposed transfer and wait of process_group_costs.
-- The path is computed per rank: a wait for another rank may be blocking although the cause of the wait is on the other
-- rank.
--
-- Title: Exposed communication that blocks other work
-- Shown: rank, pg_name, exposed_ns, exposed_blocking_ns, blocking_pct, kind, part, pg_desc, pg_ranks
-- Status: stable
-- Since: 0.1
-- Reference: Megatron-Bridge, exposed is not blocking
-- Needs: GPU activity that communicates; host operators; calls that make streams wait
-- Chart:
--   mark = "stack"
--   title = "Exposed communication: does it block?"
--   notes = [
--     "Sum over the host's steps of each rank. Blocking: on the rank's critical path. Coincident: the rank was also",
--     "held up by something else, so a faster network would gain nothing.",
--   ]
--   legend = "Part"
--   whole = "exposed communication"
--   parts.exposed_blocking_ns = ["blocking", "communication"]
--   parts.exposed_coincident_ns = ["coincident", "computation+memory"]
--   parts.exposed_unknown_ns = ["unknown", "#B8C0C8"]
CREATE OR REPLACE MACRO blocking_communication_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Parallel dimensions of the job and their sizes, innermost first, as in tp2,dp4; NULL: taken from the group
    -- descriptions.
    layout VARCHAR := NULL
) AS TABLE
-- Columns:
--   run                    VARCHAR      Run name.
--   rank                   INTEGER      Rank of the process.
--   part                   VARCHAR      'group' for time in which one group is exposed, 'several groups' for time in which more than one is.
--   pg_name                VARCHAR      Process group name; NULL if not recorded.
--   pg_desc                VARCHAR      Process group description.
--   pg_ranks               VARCHAR      Ranks of the group as JSON; NULL if unknown.
--   kind                   VARCHAR      Kind of parallelism from the layout or description: dp, tp, pp, ep, cp or mp; NULL if unknown.
--   exposed_ns             BIGINT [ns]  Exposed transfer and wait: exposed_blocking_ns + exposed_coincident_ns + exposed_unknown_ns.
--   exposed_blocking_ns    BIGINT [ns]  Exposed time in which the critical path runs through a collective.
--   exposed_coincident_ns  BIGINT [ns]  Exposed time in which the critical path runs elsewhere.
--   exposed_unknown_ns     BIGINT [ns]  Exposed time of kernels whose position relative to the critical path is unknown.
--   blocking_pct           DOUBLE [%]   exposed_blocking_ns as a share of blocking and coincident time; NULL if both are 0.
WITH
    windows AS MATERIALIZED (
        SELECT p.run, p.rank, p.ts, p.ts + p.step_ns AS end_ts
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
    ),
    labels AS MATERIALIZED (
        SELECT l.* FROM lib.group_labels(runs, layout) AS l WHERE lib.is_requested(ranks, l.rank)
    ),
    positions AS MATERIALIZED (
        SELECT s.* FROM lib._blocking_stretches(runs, ranks, steps, include_last_profiler_step) AS s
    ),
    -- Kernels, each with the time until which the path runs through it: from its start, but not always until its end.
    parts AS MATERIALIZED (
        SELECT
            m.run, m.rank, l.group_id, m.ts, m.dur, m.ts + m.dur AS end_ts, s.event_id IS NOT NULL AS has_position,
            m.ts + least(m.dur, coalesce(s.on_path_ns, 0)) AS left_ts
        FROM lib.swept_collectives(runs, ranks) AS m
        JOIN labels AS l
            ON l.run = m.run AND l.rank = m.rank AND l.channel_id = m.channel_id AND l.label_name IS NOT DISTINCT FROM m.pg_name
        LEFT JOIN positions AS s ON s.run = m.run AND s.rank = m.rank AND s.event_id = m.event_id
    ),
    spans AS (
        SELECT {'run': p.run, 'rank': p.rank, 'group_id': p.group_id} AS lane, p.ts, p.dur FROM parts AS p
    ),
    stretches AS MATERIALIZED (
        SELECT m.lane.run AS run, m.lane.rank AS rank, m.lane.group_id AS group_id, m.ts, m.ts + m.dur AS end_ts
        FROM lib.merged_intervals('spans') AS m
    ),
    -- One number identifies run and rank: sorting by one column takes half as long.
    lanes AS MATERIALIZED (
        SELECT w.run, w.rank, row_number() OVER (ORDER BY w.run, w.rank) AS lane
        FROM (SELECT DISTINCT s.run, s.rank FROM windows AS s) AS w
    ),
    -- Layers: 1 computation, 2 collectives on the path, 3 collectives with a known position. Counters: 1 groups, 2 windows.
    pieces AS (
        SELECT s.run, s.rank, s.ts, s.end_ts, 0 AS layer, 1 AS count_1, 0 AS count_2 FROM stretches AS s
        UNION ALL
        SELECT g.run, g.rank, g.ts, g.ts + g.dur, 1, 0, 0
        FROM gpu_ops AS g
        WHERE
            g.class = 'computation' AND NOT g.is_suspect AND g.dur > 0
            AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
        UNION ALL
        SELECT p.run, p.rank, p.ts, p.left_ts, 2, 0, 0 FROM parts AS p WHERE p.left_ts > p.ts
        UNION ALL
        SELECT p.run, p.rank, p.ts, p.end_ts, 3, 0, 0 FROM parts AS p WHERE p.has_position AND p.dur > 0
        UNION ALL
        SELECT w.run, w.rank, w.ts, w.end_ts, 0, 0, 1 FROM windows AS w
    ),
    lane_pieces AS MATERIALIZED (
        SELECT l.lane, p.* EXCLUDE (run, rank) FROM pieces AS p JOIN lanes AS l ON l.run = p.run AND l.rank = p.rank
    ),
    segments AS (
        SELECT
            s.lane, s.ts AS at_ts, s.layer, s.count_1 AS open_groups,
            -- Time inside two windows counts twice, as it does in overlapping steps.
            s.dur::HUGEINT * s.count_2 AS ns
        FROM lib.counted_segments('lane_pieces') AS s
    ),
    exposed AS MATERIALIZED (
        SELECT
            t.lane, t.at_ts, t.open_groups, t.layer <> 1 AS is_exposed,
            CASE WHEN t.layer = 2 THEN t.ns ELSE 0 END AS blocking_ns,
            CASE WHEN t.layer = 3 THEN t.ns ELSE 0 END AS coincident_ns,
            CASE WHEN t.layer = 0 THEN t.ns ELSE 0 END AS unknown_ns
        FROM segments AS t
    ),
    -- Prefix sums from the start of the trace: the time in an interval is the value at its end minus the value at its
    -- start.
    marks AS (
        SELECT
            e.lane, e.at_ts,
            sum(CASE WHEN e.is_exposed AND e.open_groups = 1 THEN e.blocking_ns ELSE 0 END) OVER earlier AS blocking_ns,
            sum(CASE WHEN e.is_exposed AND e.open_groups = 1 THEN e.coincident_ns ELSE 0 END) OVER earlier AS coincident_ns,
            sum(CASE WHEN e.is_exposed AND e.open_groups = 1 THEN e.unknown_ns ELSE 0 END) OVER earlier AS unknown_ns
        FROM exposed AS e
        WINDOW earlier AS (PARTITION BY e.lane ORDER BY e.at_ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),
    groups AS (
        SELECT
            l.run, l.rank, l.group_id, any_value(l.group_name) AS pg_name, any_value(l.group_desc) AS pg_desc,
            any_value(l.group_ranks) AS pg_ranks, any_value(l.group_kind) AS kind
        FROM labels AS l
        GROUP BY l.run, l.rank, l.group_id
    ),
    sums AS (
        SELECT
            s.run, s.rank, 'group' AS part, s.group_id,
            sum(b.blocking_ns - coalesce(a.blocking_ns, 0))::BIGINT AS blocking_ns,
            sum(b.coincident_ns - coalesce(a.coincident_ns, 0))::BIGINT AS coincident_ns,
            sum(b.unknown_ns - coalesce(a.unknown_ns, 0))::BIGINT AS unknown_ns
        FROM stretches AS s
        JOIN lanes AS l ON l.run = s.run AND l.rank = s.rank
        JOIN marks AS a ON a.lane = l.lane AND a.at_ts = s.ts
        JOIN marks AS b ON b.lane = l.lane AND b.at_ts = s.end_ts
        WHERE s.end_ts > s.ts
        GROUP BY s.run, s.rank, s.group_id
        UNION ALL
        SELECT
            l.run, l.rank, 'several groups', NULL, sum(e.blocking_ns)::BIGINT, sum(e.coincident_ns)::BIGINT, sum(e.unknown_ns)::BIGINT
        FROM exposed AS e
        JOIN lanes AS l ON l.lane = e.lane
        WHERE e.is_exposed AND e.open_groups > 1
        GROUP BY l.run, l.rank
    )
SELECT
    s.run,
    s.rank,
    s.part,
    g.pg_name,
    g.pg_desc,
    g.pg_ranks,
    g.kind,
    s.blocking_ns + s.coincident_ns + s.unknown_ns AS exposed_ns,
    s.blocking_ns AS exposed_blocking_ns,
    s.coincident_ns AS exposed_coincident_ns,
    s.unknown_ns AS exposed_unknown_ns,
    100 * (s.blocking_ns / nullif(s.blocking_ns + s.coincident_ns, 0)) AS blocking_pct
FROM sums AS s
LEFT JOIN groups AS g ON g.run = s.run AND g.rank = s.rank AND g.group_id = s.group_id
WHERE s.blocking_ns + s.coincident_ns + s.unknown_ns > 0
ORDER BY s.run, s.rank, s.part, s.group_id
