-- Host time within steps by kind of work, and the device idle time during that work.
--
-- Time shared by two spans of the same kind counts once. Without a device, all host time counts as exposed, because
-- the step waits for the host.
CREATE OR REPLACE MACRO lib._advice_host(
    runs,
    ranks,
    -- Name of a relation with run, rank, ts and end_ts: the steps in scope.
    step_spans,
    -- Name of a relation with the columns of lib.device_ranks.
    with_device,
    -- Name of a relation with the columns of lib.idle_parts.
    parts,
    -- Name of a relation with the columns of lib.step_sums.
    spans
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   kind          VARCHAR         Kind as in lib.host_costs.
--   has_device    BOOLEAN         Whether the rank has a device.
--   subject       VARCHAR         Name of the largest contribution; NULL if the contribution has no name.
--   event_count   BIGINT [count]  Number of events, or of loop iterations.
--   affected_ns   BIGINT [ns]     Host time in the steps.
--   exposed_ns    BIGINT [ns]     Part of affected_ns during which the device waits for a launch; all of affected_ns without a device.
--   device_ns     BIGINT [ns]     Device time of the same work.
--   event_id      BIGINT          event_id of the longest event.
--   affected_pct  DOUBLE [%]      affected_ns as a share of step time; the host is recorded throughout.
--   exposed_pct   DOUBLE [%]      exposed_ns as a share of recorded step time.
--   evidence_sql  VARCHAR         Query that returns the spans.
--   recorded_ns   BIGINT [ns]     Total recorded step time.
--   memory_ns     BIGINT [ns]     Part of recorded_ns in which only copies or memsets run.
WITH
    _spent AS MATERIALIZED (
        SELECT
            {'run': h.run, 'rank': h.rank, 'kind': h.kind} AS lane, h.subject, h.event_count, h.device_ns, h.event_id, h.ts AS whole_ts, h.dur AS whole_ns,
            greatest(h.ts, w.ts) AS ts, least(h.ts + h.dur, w.end_ts) - greatest(h.ts, w.ts) AS dur
        FROM lib.host_costs(runs, ranks) AS h
        JOIN query_table(step_spans) AS w ON w.run = h.run AND w.rank = h.rank AND h.ts < w.end_ts AND h.ts + h.dur > w.ts
    ),
    _named AS (
        SELECT s.lane, s.subject, sum(s.dur) AS ns
        FROM _spent AS s
        GROUP BY s.lane, s.subject
    ),
    _subjects AS (
        SELECT n.lane, arg_max(n.subject, (n.ns, n.subject)) AS subject
        FROM _named AS n
        GROUP BY n.lane
    ),
    -- Steps may overlap, so an event may be in several steps, but is counted once.
    _events AS (
        SELECT s.lane, s.event_id, any_value(s.event_count) AS event_count, any_value(s.device_ns) AS device_ns, min(s.whole_ts) AS whole_ts, any_value(s.whole_ns) AS whole_ns
        FROM _spent AS s
        GROUP BY s.lane, s.event_id
    ),
    _counts AS (
        SELECT e.lane, sum(e.event_count)::BIGINT AS event_count, sum(e.device_ns)::BIGINT AS device_ns, arg_max(e.event_id, (e.whole_ns, -e.whole_ts, -e.event_id)) AS event_id
        FROM _events AS e
        GROUP BY e.lane
    ),
    _once AS MATERIALIZED (
        SELECT m.lane, m.ts, m.dur FROM lib.merged_intervals('_spent') AS m
    ),
    _owned AS (
        SELECT o.lane, sum(o.dur)::BIGINT AS ns
        FROM _once AS o
        GROUP BY o.lane
    ),
    _idle AS (
        SELECT o.lane, p.ts, p.dur
        FROM _owned AS o
        JOIN query_table(parts) AS p ON p.run = o.lane.run AND p.rank = o.lane.rank
        WHERE p.waits_for = 'host'
    ),
    _exposed AS (
        SELECT i.lane, sum(i.dur)::BIGINT AS ns
        FROM lib.intersected_intervals('_once', '_idle') AS i
        GROUP BY i.lane
    ),
    _all AS (
        SELECT
            o.lane.run AS run, o.lane.rank AS rank, o.lane.kind AS kind, d.run IS NOT NULL AS has_device, s.subject, c.event_count,
            o.ns AS affected_ns,
            CASE WHEN d.run IS NULL THEN o.ns ELSE coalesce(e.ns, 0) END AS exposed_ns,
            c.device_ns, c.event_id
        FROM _owned AS o
        JOIN _counts AS c ON c.lane = o.lane
        JOIN _subjects AS s ON s.lane = o.lane
        LEFT JOIN _exposed AS e ON e.lane = o.lane
        LEFT JOIN query_table(with_device) AS d ON d.run = o.lane.run AND d.rank = o.lane.rank
    )
SELECT
    a.*,
    100 * (a.affected_ns / nullif(s.step_ns, 0)) AS affected_pct,
    100 * (a.exposed_ns / nullif(s.recorded_ns, 0)) AS exposed_pct,
    format('FROM lib.host_costs([{}], [{}]) WHERE kind = {} ORDER BY dur DESC', lib.sql_literal(a.run), a.rank, lib.sql_literal(a.kind)) AS evidence_sql,
    s.recorded_ns, s.memory_ns
FROM _all AS a
JOIN query_table(spans) AS s ON s.run = a.run AND s.rank = a.rank
