-- Idle time of devices by the host activity on the thread that launches the next operation.
--
-- The rows of a rank sum to its idle and unrecorded time in the steps. See the idle_causes analysis for the causes.
CREATE OR REPLACE MACRO lib.caused_idle(
    runs,
    ranks,
    -- Name of a relation with the columns of lib.idle_parts.
    parts,
    -- Name reported first: operator, outermost operator, module, frame or annotation.
    level
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   cause         VARCHAR         Cause of the idle time: data loading, synchronization, runtime call, host operator, module, python, annotation, no event, device queue, unrecorded or unknown.
--   relation      VARCHAR         Relation to the idle time: cause, effect (after a synchronization that drained the queue), device, unrecorded or unknown.
--   name          VARCHAR         Name of the host activity, chosen by level; NULL if none was open or the device is the cause.
--   call          VARCHAR         Runtime call that was active, unless it launches kernels; NULL otherwise.
--   module        VARCHAR         Class of the innermost nn.Module; NULL if none or not recorded.
--   idle_ns       BIGINT [ns]     Idle time with this cause (unrecorded time if the cause is unrecorded).
--   gap_count     BIGINT [count]  Number of gaps with this cause; a gap across a step boundary counts in each step.
--   longest_ns    BIGINT [ns]     Longest time with this cause in one gap.
--   longest_step  BIGINT          Step of the gap with the longest time; NULL in a trace without steps.
--   longest_ts    BIGINT [ns]     Start of the longest time, relative to the run's first event.
--   event_id      BIGINT          Event to inspect in the longest gap; NULL if unknown.
--   gap_parts     BIGINT[]        Parts with this cause, once per step; with list_distinct, parts shared by several rows count once.
WITH
    _told AS (
        FROM lib.idle_reasons(runs, ranks, parts, level)
    ),
    -- A gap has up to two parts in a step, and many stretches. The length and position of a stretch are packed into one
    -- number, because ordering by two columns costs twice as much.
    _in_parts AS (
        SELECT
            t.part, t.cause, t.relation, t.name, t.call, t.module, sum(t.dur)::BIGINT AS ns,
            arg_max(t.event_id, t.dur::HUGEINT << 63 | (9223372036854775807 - t.before_ns)) AS event_id
        FROM _told AS t
        GROUP BY ALL
    ),
    _in_steps AS (
        SELECT
            i.*, p.run, p.rank, p.ts, unnest(p.in_steps) AS step
        FROM _in_parts AS i
        JOIN query_table(parts) AS p ON p.part = i.part
    ),
    _summed AS (
        SELECT
            i.run, i.rank, i.cause, i.relation, i.name, i.call, i.module,
            sum(i.ns)::BIGINT AS idle_ns,
            count(*) AS gap_count,
            list(i.part) AS gap_parts,
            arg_max({'ns': i.ns, 'step': i.step, 'ts': i.ts, 'event_id': i.event_id}, (i.ns, -i.ts, -coalesce(i.step, 0))) AS longest
        FROM _in_steps AS i
        GROUP BY ALL
    )
SELECT
    s.* EXCLUDE (longest, gap_parts), s.longest.ns AS longest_ns, s.longest.step AS longest_step, s.longest.ts AS longest_ts, s.longest.event_id AS event_id, s.gap_parts
FROM _summed AS s
