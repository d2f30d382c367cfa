-- Duration of each user annotation by name, per rank, on the device or on the host.
--
-- On the device, an annotation spans the operations that its range launched, on each stream. Names are ordered by
-- total duration within a rank. num_annotations limits the number of names that get a row of their own. duration_ratio
-- instead selects the names with the longest total duration that together make up this share of the rank's total;
-- num_annotations takes precedence. The remaining ranges form one row "others", whose statistics are computed from the
-- ranges themselves. Nested annotations each count, so the totals of a rank overlap. If there is a row "others", HTA
-- computes the statistics of every row from the total durations of the names (Q21). HTA applies duration_ratio as a
-- quantile of cumulative sums (Q22).
--
-- Title: Longest user annotations
-- Shown: rank, sum_ns, annotation_count, name, mean_ns, max_ns
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_gpu_user_annotation_breakdown
-- Needs: user annotations (record_function) with copies on the device, which older profilers do not write; without device copies, set use_gpu_annotation to false (--no-use-gpu-annotation) to analyze the host ranges
CREATE OR REPLACE MACRO user_annotation_breakdown_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether to use the device copies of annotations; otherwise the ranges on the host.
    use_gpu_annotation BOOLEAN := true,
    -- Number of names with a row of their own, per rank; NULL means every name.
    num_annotations BIGINT := NULL,
    -- Share of the rank's total covered by names with a row of their own; used if num_annotations is NULL.
    duration_ratio DOUBLE := NULL,
    -- Names that are never combined into others, as substrings or regular expressions.
    keep_patterns VARCHAR[] := NULL
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   rank              INTEGER         Rank of the process.
--   name              VARCHAR         Name of the annotation, or others.
--   annotation_count  BIGINT [count]  Number of ranges.
--   sum_ns            BIGINT [ns]     Total duration.
--   min_ns            BIGINT [ns]     Shortest duration.
--   max_ns            BIGINT [ns]     Longest duration.
--   mean_ns           DOUBLE [ns]     Mean duration.
--   std_ns            DOUBLE [ns]     Sample standard deviation; NULL for a single range.
--   name_count        BIGINT [count]  Number of names in the row; 1, except for others.
WITH
    ranges AS (
        SELECT a.run, a.rank, a.name, a.dur
        FROM annotations AS a
        WHERE
            a.on_gpu = use_gpu_annotation
            AND a.dur >= 0
            AND lib.is_requested(runs, a.run)
            AND lib.is_requested(ranks, a.rank)
            AND lib.is_requested(steps, a.step)
            AND (include_last_profiler_step OR NOT a.in_last_step)
    ),
    names AS (
        SELECT g.run, g.rank, g.name, sum(g.dur) AS total
        FROM ranges AS g
        GROUP BY ALL
    ),
    wanted AS (
        SELECT DISTINCT n.name
        FROM (SELECT DISTINCT m.name FROM names AS m) AS n
        JOIN (SELECT unnest(keep_patterns) AS pattern) AS p
            ON contains(n.name, p.pattern) OR TRY(regexp_matches(n.name, p.pattern))
    ),
    ranked AS (
        SELECT
            n.*,
            row_number() OVER by_total AS position,
            sum(n.total) OVER by_total - n.total AS before,
            sum(n.total) OVER (PARTITION BY n.run, n.rank) AS rank_total
        FROM names AS n
        WINDOW by_total AS (PARTITION BY n.run, n.rank ORDER BY n.total DESC, n.name)
    ),
    labeled AS (
        SELECT
            k.run,
            k.rank,
            k.name,
            w.name IS NOT NULL
            OR CASE
                WHEN num_annotations IS NOT NULL THEN k.position <= num_annotations
                WHEN duration_ratio IS NOT NULL THEN k.before < duration_ratio * k.rank_total
                ELSE true
            END AS is_kept
        FROM ranked AS k
        LEFT JOIN wanted AS w ON w.name = k.name
    )
SELECT
    g.run,
    g.rank,
    CASE WHEN l.is_kept THEN g.name ELSE 'others' END AS name,
    count(*) AS annotation_count,
    sum(g.dur)::BIGINT AS sum_ns,
    min(g.dur) AS min_ns,
    max(g.dur) AS max_ns,
    avg(g.dur) AS mean_ns,
    lib.exact_std(g.dur) AS std_ns,
    count(DISTINCT g.name) AS name_count
FROM ranges AS g
JOIN labeled AS l ON l.run = g.run AND l.rank = g.rank AND l.name = g.name
GROUP BY g.run, g.rank, l.is_kept, CASE WHEN l.is_kept THEN g.name ELSE 'others' END
ORDER BY g.run, g.rank, l.is_kept DESC, sum_ns DESC, name
