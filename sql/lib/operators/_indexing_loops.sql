-- Python loops that index a tensor element by element: the same few calls after each aten::select, at least ten
-- times.
--
-- Detection follows torch's ForLoopIndexingPattern among the calls of one function, with three differences. An
-- iteration may begin with several aten::select calls, as in a loop that indexes two tensors. It has at most ten
-- calls, because a longer iteration does other work. Addresses in names are ignored. Selects inside an operator are
-- not a Python loop.
CREATE OR REPLACE MACRO lib._indexing_loops(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   rank         INTEGER         Rank of the process.
--   body         VARCHAR         Calls after the first select of each iteration; NULL if there are none.
--   event_count  BIGINT [count]  Number of iterations.
--   ts           BIGINT [ns]     Start of the first iteration.
--   dur          BIGINT [ns]     Time until the end of the last iteration.
--   event_id     BIGINT          event_id of the first select.
WITH
    _selecting AS (
        SELECT c.run, c.rank, c.span, c.pid, c.tid, coalesce(c.parent_id, -1) AS parent_id
        FROM cpu_ops AS c
        WHERE c.name = 'aten::select' AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        GROUP BY ALL
        HAVING count(*) >= 10
    ),
    _places AS MATERIALIZED (
        SELECT s.*, row_number() OVER () AS position
        FROM _selecting AS s
        LEFT JOIN cpu_ops AS o ON o.run = s.run AND o.rank = s.rank AND o.event_id = s.parent_id
        WHERE o.event_id IS NULL OR NOT starts_with(o.name, 'aten::')
    ),
    _calls AS (
        SELECT c.run, c.rank, c.span, c.pid, c.tid, c.parent_id, c.event_id, c.ts, c.dur, c.name FROM cpu_ops AS c
        UNION ALL
        SELECT p.run, p.rank, p.span, p.pid, p.tid, p.parent_id, p.event_id, p.ts, p.dur, p.name FROM python_calls AS p
    ),
    _siblings AS MATERIALIZED (
        SELECT
            p.position, p.run, p.rank, c.event_id, c.ts, c.ts + c.dur AS end_ts, c.name,
            coalesce(lag(c.name) OVER (PARTITION BY p.position ORDER BY c.ts, c.event_id), '') AS previous
        FROM _calls AS c
        JOIN _places AS p
            ON p.run = c.run AND p.rank = c.rank AND p.span = c.span AND p.parent_id = coalesce(c.parent_id, -1)
            AND p.pid IS NOT DISTINCT FROM c.pid AND p.tid IS NOT DISTINCT FROM c.tid
    ),
    -- Two variants: an iteration begins with each select, or with the first of several consecutive selects.
    _ways AS (
        SELECT p.position, true AS at_each
        FROM _places AS p
        UNION ALL
        SELECT DISTINCT s.position, false
        FROM _siblings AS s
        WHERE s.name = 'aten::select' AND s.previous = 'aten::select'
    ),
    _marked AS MATERIALIZED (
        SELECT
            s.*, w.at_each,
            count_if(s.name = 'aten::select' AND (w.at_each OR s.previous <> 'aten::select'))
                OVER (PARTITION BY w.at_each, s.position ORDER BY s.ts, s.event_id) AS turn
        FROM _siblings AS s
        JOIN _ways AS w ON w.position = s.position
    ),
    -- An iteration repeats all calls of the previous iteration, so it is not shorter; comparing lengths excludes most
    -- candidates.
    _lengths AS (
        SELECT m.at_each, m.position, m.turn, count(*) AS length
        FROM _marked AS m
        WHERE m.turn > 0
        GROUP BY m.at_each, m.position, m.turn
    ),
    _shrinking AS (
        SELECT l.*, coalesce(l.length < lag(l.length) OVER (PARTITION BY l.at_each, l.position ORDER BY l.turn), true) AS is_first
        FROM _lengths AS l
    ),
    _stretches AS (
        SELECT s.*, count_if(s.is_first) OVER (PARTITION BY s.at_each, s.position ORDER BY s.turn) AS stretch
        FROM _shrinking AS s
    ),
    _possible AS (
        SELECT s.*
        FROM _stretches AS s
        QUALIFY
            count(*) OVER (PARTITION BY s.at_each, s.position, s.stretch) >= 10
            AND min(s.length) OVER (PARTITION BY s.at_each, s.position, s.stretch) <= 10
    ),
    _turns AS (
        SELECT
            m.at_each, m.position, p.stretch, m.run, m.rank, m.turn, min(m.ts) AS ts, arg_min(m.event_id, (m.ts, m.event_id)) AS event_id,
            list(lib.frame_name(m.name) ORDER BY m.ts, m.event_id) AS names,
            list(m.end_ts ORDER BY m.ts, m.event_id) AS ends
        FROM _marked AS m
        JOIN _possible AS p ON p.at_each = m.at_each AND p.position = m.position AND p.turn = m.turn
        GROUP BY m.at_each, m.position, p.stretch, m.run, m.rank, m.turn
    ),
    -- Calls after a loop are initially assigned to its last iteration.
    _compared AS (
        SELECT t.*, coalesce(list_slice(t.names, 1, len(lag(t.names) OVER turns)) = lag(t.names) OVER turns, false) AS goes_on
        FROM _turns AS t
        WINDOW turns AS (PARTITION BY t.at_each, t.position, t.stretch ORDER BY t.turn)
    ),
    _numbered AS (
        SELECT c.*, count_if(NOT c.goes_on) OVER (PARTITION BY c.at_each, c.position, c.stretch ORDER BY c.turn) AS loop
        FROM _compared AS c
    ),
    _loops AS (
        SELECT
            n.run, n.rank, count(*) AS event_count, min(n.ts) AS ts, arg_min(n.event_id, n.turn) AS event_id, arg_min(n.names, n.turn) AS names,
            arg_max(n.ends, n.turn) AS ends
        FROM _numbered AS n
        GROUP BY n.at_each, n.position, n.stretch, n.run, n.rank, n.loop
    )
-- If an iteration has a single select, both variants find the same loop.
SELECT DISTINCT
    l.run, l.rank, nullif(array_to_string(list_slice(l.names, 2, len(l.names)), ', '), '') AS body, l.event_count, l.ts,
    list_max(list_slice(l.ends, 1, len(l.names))) - l.ts AS dur, l.event_id
FROM _loops AS l
WHERE l.event_count >= 10 AND len(l.names) <= 10
