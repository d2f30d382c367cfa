-- Share of device time in graph replays, and the part of this time whose operators are known from a capture.
--
-- A replay is one call that starts many operations. The operators, shapes and modules of these operations come from
-- the capture of the graph, if the capture was ingested (hta-sql ingest --captures). In this case, operator_table,
-- roofline, modules and launching_operators include the replayed operations. The row without a match_method contains
-- operations without a capture. Ranks without replays have no rows.
--
-- Title: Graph replays and their captures
-- Shown: rank, total_ns, device_pct, match_method, replay_count, op_count, replayed_pct, graph_count
-- Status: stable
-- Since: 0.1
-- Reference: TraceLens graph capture correlation
-- Needs: GPU activity and runtime calls; rows with a match_method need a capture
-- Report: table; at most 64 ranks
-- Ranks: independent
CREATE OR REPLACE MACRO graph_coverage_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   match_method  VARCHAR         position: replay and graph have the same list of names; occurrence: the same names in a different order; alignment: names are missing or differ; count: the capture has no names; NULL: no capture explains the operation.
--   graph_count   BIGINT [count]  Number of captured graphs; NULL without a match.
--   replay_count  BIGINT [count]  Number of replays that contain operations in the row.
--   op_count      BIGINT [count]  Number of device operations in the row.
--   total_ns      BIGINT [ns]     Total duration of the row's operations.
--   replayed_pct  DOUBLE [%]      total_ns as a share of the time of all replayed operations.
--   device_pct    DOUBLE [%]      total_ns as a share of the time of all device operations.
WITH
    ops AS (
        SELECT g.run, g.rank, g.launch_id, g.dur, m.match_method, (m.source, m.graph_number) AS graph, contains(c.name, 'GraphLaunch') AS is_replayed
        FROM lib.launched_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        LEFT JOIN runtime_calls AS c ON c.run = g.run AND c.rank = g.rank AND c.event_id = g.launch_id
        LEFT JOIN graph_matches AS m ON m.run = g.run AND m.rank = g.rank AND m.event_id = g.event_id
    ),
    summed AS (
        SELECT
            o.run, o.rank, o.is_replayed, o.match_method,
            count(DISTINCT o.graph) FILTER (o.match_method IS NOT NULL) AS graph_count,
            count(DISTINCT o.launch_id) AS replay_count, count(*) AS op_count, sum(o.dur)::BIGINT AS total_ns
        FROM ops AS o
        GROUP BY ALL
    ),
    shares AS (
        SELECT
            s.*, sum(s.total_ns) OVER (PARTITION BY s.run, s.rank) AS device_ns,
            sum(s.total_ns) FILTER (s.is_replayed) OVER (PARTITION BY s.run, s.rank) AS replayed_ns
        FROM summed AS s
    )
SELECT
    s.run,
    s.rank,
    s.match_method,
    nullif(s.graph_count, 0) AS graph_count,
    s.replay_count,
    s.op_count,
    s.total_ns,
    100 * (s.total_ns / nullif(s.replayed_ns, 0)) AS replayed_pct,
    100 * (s.total_ns / nullif(s.device_ns, 0)) AS device_pct
FROM shares AS s
WHERE s.is_replayed
ORDER BY s.run, s.rank, s.total_ns DESC, s.match_method
