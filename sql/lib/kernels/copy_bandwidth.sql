-- Bandwidth of concurrent copies and memsets by kind: one point per change.
CREATE OR REPLACE MACRO lib.copy_bandwidth(
    runs,
    ranks,
    steps,
    include_last_profiler_step,
    -- Duration assumed for copies recorded with duration 0 [ns]; 0 excludes them.
    zero_duration_as_ns
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   rank           INTEGER         Rank of the process.
--   device         BIGINT          Device number.
--   name           VARCHAR         Kind of copy.
--   ts             BIGINT [ns]     Time of the change, relative to the run's first event.
--   dur            BIGINT [ns]     Time to the next change; NULL after the last change.
--   running_count  BIGINT [count]  Number of copies running after the change.
--   recorded_rate  BIGINT [1]      Total recorded bandwidth of the running copies [bytes/s]; NULL if not recorded.
--   computed_rate  BIGINT [1]      Total of bytes / duration over the running copies [bytes/s]; NULL if bytes are not recorded.
WITH
    _copies AS (
        SELECT k.*
        FROM lib.copy_rates(runs, ranks, steps, include_last_profiler_step, zero_duration_as_ns) AS k
        WHERE k.dur > 0
    ),
    _moves AS (
        SELECT k.run, k.rank, k.span, k.device, k.name, k.ts AS move_ts, 1 AS sign, k.recorded_rate, k.computed_rate
        FROM _copies AS k
        UNION ALL
        SELECT k.run, k.rank, k.span, k.device, k.name, k.ts + k.dur, -1, k.recorded_rate, k.computed_rate
        FROM _copies AS k
    ),
    _changes AS (
        SELECT
            m.run, m.rank, m.span, m.device, m.name, m.move_ts,
            sum(m.sign) AS running,
            sum(m.sign * m.recorded_rate) AS recorded,
            sum(m.sign) FILTER (m.recorded_rate IS NOT NULL) AS with_recorded,
            sum(m.sign * m.computed_rate) AS computed,
            sum(m.sign) FILTER (m.computed_rate IS NOT NULL) AS with_computed
        FROM _moves AS m
        GROUP BY m.run, m.rank, m.span, m.device, m.name, m.move_ts
    ),
    _sums AS (
        SELECT
            c.run, c.rank, c.span, c.device, c.name, c.move_ts,
            sum(c.running) OVER _so_far AS running,
            sum(c.with_recorded) OVER _so_far AS with_recorded,
            sum(c.recorded) OVER _so_far AS recorded,
            sum(c.with_computed) OVER _so_far AS with_computed,
            sum(c.computed) OVER _so_far AS computed
        FROM _changes AS c
        WINDOW _so_far AS (
            PARTITION BY c.run, c.rank, c.span, c.device, c.name ORDER BY c.move_ts ROWS UNBOUNDED PRECEDING
        )
    ),
    -- The bandwidth is 0 if nothing runs. It is unknown if nothing is recorded for the running copies, or if 64 bits
    -- cannot represent the sum.
    _values AS (
        SELECT
            s.run, s.rank, s.span, s.device, s.name, s.move_ts,
            s.running::BIGINT AS running,
            TRY_CAST(CASE WHEN s.running = 0 THEN 0 WHEN s.with_recorded > 0 THEN s.recorded END AS BIGINT) AS recorded,
            TRY_CAST(CASE WHEN s.running = 0 THEN 0 WHEN s.with_computed > 0 THEN s.computed END AS BIGINT) AS computed
        FROM _sums AS s
    ),
    _points AS (
        SELECT
            v.*,
            lag(struct_pack(r := v.running, a := v.recorded, b := v.computed)) OVER (
                PARTITION BY v.run, v.rank, v.span, v.device, v.name ORDER BY v.move_ts
            ) AS before
        FROM _values AS v
    )
SELECT
    p.run,
    p.rank,
    p.device,
    p.name,
    p.move_ts AS ts,
    lead(p.move_ts) OVER (PARTITION BY p.run, p.rank, p.span, p.device, p.name ORDER BY p.move_ts) - p.move_ts AS dur,
    p.running AS running_count,
    p.recorded AS recorded_rate,
    p.computed AS computed_rate
FROM _points AS p
WHERE struct_pack(r := p.running, a := p.recorded, b := p.computed) IS DISTINCT FROM p.before
