-- Number of significant calls on each rank: optimizer steps, collectives, values read by the host, allocations.
--
-- Every rank has a row for each kind that occurs on any rank of its run, so a rank without such calls shows 0. The
-- kinds, with their names and meanings, are defined in lib._special_operator_kinds. A rank differs if its count is not
-- equal to the median count.
--
-- Title: Significant calls by rank
-- Shown: kind, rank, sum_ns, op_count, name, is_different, median_count, meaning
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight special operator statistics
-- Needs: host events, or GPU activity
CREATE OR REPLACE MACRO special_operators_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to show; NULL means every rank. The comparison uses all ranks.
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   kind          VARCHAR         Kind of call.
--   rank          INTEGER         Rank of the process.
--   stage         INTEGER         Pipeline stage, from 0; NULL without pipeline parallelism.
--   op_count      BIGINT [count]  Number of calls.
--   sum_ns        BIGINT [ns]     Total duration of the calls.
--   name          VARCHAR         Most frequent name of these calls on the rank; NULL if there are none.
--   median_count  BIGINT [count]  Median of op_count over the ranks; for an even number of ranks, the lower of the two middle values.
--   is_different  BOOLEAN         Whether op_count differs from median_count; NULL for a single rank.
--   about_code    VARCHAR         Code of the meaning in the table messages.
--   meaning       VARCHAR         Meaning of the count.
WITH
    totals AS MATERIALIZED (
        SELECT h.run, h.rank, h.name, count(*) AS op_count, sum(h.dur)::BIGINT AS total
        FROM lib.scoped_host_events(runs, NULL, steps, include_last_profiler_step) AS h
        GROUP BY h.run, h.rank, h.name
        UNION ALL
        SELECT g.run, g.rank, g.name, count(*), sum(g.dur)::BIGINT
        FROM lib.scoped_gpu_ops(runs, NULL, steps, include_last_profiler_step) AS g
        GROUP BY g.run, g.rank, g.name
    ),
    kinds AS MATERIALIZED (
        SELECT k.name, k.kind, k.about_code
        FROM lib._special_operator_kinds('totals') AS k
    ),
    found AS MATERIALIZED (
        SELECT
            t.run, t.rank, k.kind, sum(t.op_count)::BIGINT AS op_count, sum(t.total)::BIGINT AS total,
            arg_max(t.name, (t.op_count, -hash(t.name)::HUGEINT)) AS name
        FROM totals AS t
        JOIN kinds AS k ON k.name = t.name
        GROUP BY t.run, t.rank, k.kind
    ),
    known AS (
        SELECT DISTINCT t.run, t.rank FROM totals AS t
    ),
    kinds_of_runs AS (
        SELECT DISTINCT f.run, f.kind FROM found AS f
    ),
    about_kinds AS (
        SELECT DISTINCT k.kind, k.about_code FROM kinds AS k
    ),
    counted AS (
        SELECT
            k.run, k.rank, r.kind, coalesce(f.op_count, 0) AS op_count, coalesce(f.total, 0) AS total, f.name,
            quantile_disc(coalesce(f.op_count, 0), 0.5) OVER peers AS middle, count(*) OVER peers AS rank_count
        FROM known AS k
        JOIN kinds_of_runs AS r ON r.run = k.run
        LEFT JOIN found AS f ON f.run = k.run AND f.rank = k.rank AND f.kind = r.kind
        WINDOW peers AS (PARTITION BY k.run, r.kind)
    )
SELECT
    c.run,
    c.kind,
    c.rank,
    p.stage,
    c.op_count,
    c.total AS sum_ns,
    c.name,
    c.middle AS median_count,
    CASE WHEN c.rank_count > 1 THEN c.op_count <> c.middle END AS is_different,
    a.about_code,
    t.message AS meaning
FROM counted AS c
JOIN about_kinds AS a ON a.kind = c.kind
LEFT JOIN messages AS t ON t.code = a.about_code
LEFT JOIN lib.pipeline_ranks(runs) AS p ON p.run = c.run AND p.rank = c.rank
WHERE lib.is_requested(ranks, c.rank)
ORDER BY c.run, c.kind, c.rank
