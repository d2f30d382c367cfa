-- The idle time of devices by what the host was doing on the thread that launches next.
--
-- The rows of a rank sum to its idle and unrecorded time in the steps. What they mean stands at the analysis idle_causes.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.caused_idle(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Name of a relation with the columns of lib.idle_parts.
    parts,
    -- What is named first: operator, outermost operator, module, frame or annotation.
    level
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   cause         VARCHAR         data loading, synchronization, runtime call, host operator, module, python, annotation, no event, device queue, unrecorded or unknown.
--   relation      VARCHAR         cause; effect: runs after a synchronization that drained the queue; device; unrecorded; unknown.
--   name          VARCHAR         What the host was in, by level; NULL if nothing was open or it is the device's.
--   call          VARCHAR         Runtime call that it was in, but for those that launch kernels; NULL otherwise.
--   module        VARCHAR         Class of the innermost nn.Module; NULL if none or not recorded.
--   idle_ns       BIGINT [ns]     Idle time.
--   gap_count     BIGINT [count]  Gaps that it is in; one over the bound of two steps counts in each.
--   longest_ns    BIGINT [ns]     Most of it in one gap.
--   longest_step  BIGINT          Step of that gap; NULL in a trace without steps.
--   longest_ts    BIGINT [ns]     Start of what counts of that gap, since the run's first event.
--   event_id      BIGINT          What to look at there; NULL if unknown.
--   gap_parts     BIGINT[]        Parts that it is in, once for each step; list_distinct counts those of several rows once.
WITH
    _told AS (
        FROM lib.idle_reasons(runs, ranks, parts, level)
    ),
    -- A gap has up to two parts in a step, and many stretches. The longest and, of equals, its first event are one number:
    -- to order by two costs as much again.
    _in_parts AS (
        SELECT
            t.part, t.cause, t.relation, t.name, t.call, t.module, sum(t.dur)::BIGINT AS ns,
            max(t.dur::HUGEINT << 63 | (9223372036854775807 - t.event_id)) AS longest
        FROM _told AS t
        GROUP BY ALL
    ),
    _in_steps AS (
        SELECT
            i.*, (9223372036854775807 - (i.longest & 9223372036854775807))::BIGINT AS event_id,
            p.run, p.rank, p.ts, unnest(p.in_steps) AS step
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
