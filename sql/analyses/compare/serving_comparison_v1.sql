-- What changed between two runs of a serving engine at equal load: iteration time, tokens per second, idle time and kernels.
--
-- The first run is the control, the second the test. Iterations are compared only with iterations of the same phase at
-- about the same load. Loads are the same if the number of requests, the number of new tokens and the context length
-- per request are between the same powers of two in both runs, and if their means differ by at most 10 % (context
-- length: 25 %). A decode is never compared with a prefill. The row of a phase is the mean over the loads that both
-- runs have, each weighted by its number of iterations in the control, so a different mix of requests does not count
-- as a change in the engine. The time of an iteration is measured as in the serving analysis: from the end of the
-- previous iteration on the device to the end of the iteration, without unrecorded time. For a decode, this is the
-- time per output token.
--
-- Iterations are the samples for the noise; all ranks of an iteration are one sample because they wait for each other.
-- noise_ns is half the confidence interval of the difference: t * sqrt(variance * sum(w * w * (1 / n1 + 1 / n2))) over
-- the loads that both runs have. n1 and n2 are the numbers of iterations of a load in control and test, and w its weight
-- (1 in its own row). variance is pooled: the squared deviations from the mean of the load in the run, per degree of
-- freedom. t is Student's quantile (lib.student_t). Each load has n1 + n2 - 2 degrees of freedom.
-- A difference counts as a change if it is statistically significant and above 0.5 % of the iteration time, or 0.1 %
-- for parts and kernels. The confidence level is 99 %, and 99.9 % for parts and kernels because there are many. With
-- only one iteration in each run, noise is unknown: parts and kernels that differ by more than 1 % of the iteration
-- time count as changes, and the verdict on the iteration is unknown. If the noise exceeds 2 % of the iteration time,
-- or 1 % for parts and kernels, the verdict on a difference within the noise is also unknown. Parts sum to the
-- iteration. Kernels do not, because overlapping kernels each count in full.
--
-- Title: What changed between two runs of a serving engine
-- Shown: phase, level, subject, request_range, context_range, control_ns, test_ns, diff_pct, noise_pct, verdict
-- Status: experimental
-- Since: 0.1
-- Reference: none
-- Needs: two runs in the store with annotations of a serving engine, or graph replays
-- Scope: runs, ranks; iterations of a server are not profiler steps
CREATE OR REPLACE MACRO serving_comparison_v1(
    -- Control and test, in this order; NULL means the first two runs of the store by name.
    runs VARCHAR[] := NULL,
    -- Ranks to include from both runs; NULL means every rank.
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   control_run                      VARCHAR         Run of the control.
--   test_run                         VARCHAR         Run of the test.
--   phase                            VARCHAR         prefill, decode, mixed, speculative or idle; NULL if unknown.
--   level                            VARCHAR         phase, load, part or kernel.
--   subject                          VARCHAR         Part (between iterations, idle inside or busy) or name of the kernel; NULL for phases and loads.
--   request_range                    VARCHAR         Range of the number of requests, such as 8-15; NULL if unknown, or for levels other than load.
--   token_range                      VARCHAR         Range of the number of new tokens.
--   context_range                    VARCHAR         Range of the mean context length of a request.
--   control_ns                       BIGINT [ns]     Mean time per iteration of the control; NULL without comparable iterations.
--   test_ns                          BIGINT [ns]     Mean time per iteration of the test.
--   diff_ns                          BIGINT [ns]     Test minus control.
--   diff_pct                         DOUBLE [%]      diff_ns as a share of control_ns; NULL if that is 0.
--   noise_ns                         DOUBLE [ns]     Largest difference that chance alone explains; NULL if no load has more than one iteration in either run.
--   noise_pct                        DOUBLE [%]      noise_ns as a share of control_ns; tokens per second have the same relative noise.
--   is_change                        BOOLEAN         Whether the difference is statistically significant and not small.
--   verdict                          VARCHAR         slower, faster, longer, shorter (idle time), added, removed, unchanged, within noise, unknown (too few iterations or too much noise), other load, no common load, only in control or only in test.
--   control_input_tokens_per_s       DOUBLE [1/s]    Tokens processed per second of iteration time in the control; NULL for parts and kernels, or if the number of tokens is missing for any iteration.
--   test_input_tokens_per_s          DOUBLE [1/s]    Tokens processed per second of iteration time in the test.
--   control_min_output_tokens_per_s  DOUBLE [1/s]    Minimum number of tokens generated per second of iteration time in the control.
--   test_min_output_tokens_per_s     DOUBLE [1/s]    Minimum number of tokens generated per second of iteration time in the test.
--   control_iteration_count          BIGINT [count]  Number of iterations of the control; for phases, parts and kernels, only iterations at loads that both runs have, or all iterations if there is no such load.
--   test_iteration_count             BIGINT [count]  Number of iterations of the test.
WITH
    pair AS (
        FROM lib.compared_runs(runs)
    ),
    found AS MATERIALIZED (
        SELECT i.*
        FROM lib.serving_iterations(runs, ranks) AS i
        JOIN pair AS p ON i.run IN (p.control_run, p.test_run)
    ),
    ops AS MATERIALIZED (
        FROM lib.iteration_ops('found', runs, ranks)
    ),
    -- Loads are grouped by powers of two; -1 if unknown.
    measured AS MATERIALIZED (
        SELECT
            m.run, m.rank, m.event_id, m.iteration, coalesce(m.phase, '') AS phase, m.run = p.control_run AS is_control,
            CASE WHEN m.request_count IS NOT NULL THEN floor(log2(greatest(m.request_count, 1)))::INTEGER ELSE -1 END AS request_power,
            CASE WHEN m.new_tokens IS NOT NULL THEN floor(log2(greatest(m.new_tokens, 1)))::INTEGER ELSE -1 END AS token_power,
            CASE WHEN m.context_tokens / nullif(m.request_count, 0) IS NOT NULL THEN floor(log2(greatest(m.context_tokens / m.request_count, 1)))::INTEGER ELSE -1 END AS context_power,
            m.request_count, m.new_tokens, m.context_tokens, m.min_output_tokens,
            greatest(coalesce(m.gap_before_ns, 0), 0) AS gap_ns, m.device_ns - m.busy_ns AS idle_ns, m.busy_ns
        FROM lib.measured_iterations('found', 'ops') AS m
        JOIN pair AS p ON m.run IN (p.control_run, p.test_run)
        WHERE m.device_ns IS NOT NULL AND p.control_run <> p.test_run
    ),
    -- All ranks of an iteration form one sample.
    samples AS MATERIALIZED (
        SELECT
            m.phase, m.request_power, m.token_power, m.context_power, m.is_control, m.iteration, count(*) AS rank_count,
            sum(m.gap_ns) // count(*) AS gap_ns, sum(m.idle_ns) // count(*) AS idle_ns, sum(m.busy_ns) // count(*) AS busy_ns,
            sum(m.request_count) / count(*) AS requests, sum(m.new_tokens) / count(*) AS tokens, avg(m.context_tokens / nullif(m.request_count, 0)) AS request_contexts,
            CASE WHEN count(m.min_output_tokens) = count(*) THEN sum(m.min_output_tokens) / count(*) END AS outputs
        FROM measured AS m
        GROUP BY ALL
    ),
    loads AS (
        SELECT
            s.phase, s.request_power, s.token_power, s.context_power,
            count(*) FILTER (s.is_control) AS control_n, count(*) FILTER (NOT s.is_control) AS test_n,
            avg(s.requests) FILTER (s.is_control) AS control_requests, avg(s.requests) FILTER (NOT s.is_control) AS test_requests,
            avg(s.tokens) FILTER (s.is_control) AS control_tokens, avg(s.tokens) FILTER (NOT s.is_control) AS test_tokens,
            avg(s.request_contexts) FILTER (s.is_control) AS control_request_contexts,
            avg(s.request_contexts) FILTER (NOT s.is_control) AS test_request_contexts,
            CASE WHEN count(s.outputs) = count(*) THEN avg(s.outputs) FILTER (s.is_control) END AS control_outputs,
            CASE WHEN count(s.outputs) = count(*) THEN avg(s.outputs) FILTER (NOT s.is_control) END AS test_outputs
        FROM samples AS s
        GROUP BY s.phase, s.request_power, s.token_power, s.context_power
    ),
    judged AS MATERIALIZED (
        SELECT
            l.*, row_number() OVER (ORDER BY l.phase, l.request_power, l.token_power, l.context_power) AS load_id,
            l.control_n > 0 AND l.test_n > 0
            AND coalesce(abs(l.control_requests - l.test_requests) <= 0.1 * l.control_requests, true)
            AND coalesce(abs(l.control_tokens - l.test_tokens) <= 0.1 * l.control_tokens, true)
            AND coalesce(abs(l.control_request_contexts - l.test_request_contexts) <= 0.25 * l.control_request_contexts, true) AS is_common
        FROM loads AS l
    ),
    -- Share of the control's iterations with this load, counting only loads that both runs have.
    weighted AS MATERIALIZED (
        SELECT
            j.*,
            CASE WHEN j.is_common THEN j.control_n / sum(j.control_n) FILTER (j.is_common) OVER (PARTITION BY j.phase) END AS weight,
            sum(CASE WHEN j.is_common THEN j.control_n + j.test_n - 2 END) OVER (PARTITION BY j.phase) AS phase_freedom
        FROM judged AS j
    ),
    kernel_ops AS (
        SELECT g.name, m.phase, m.request_power, m.token_power, m.context_power, m.is_control, m.iteration, sum(o.dur)::BIGINT AS ns
        FROM ops AS o
        JOIN measured AS m ON m.run = o.run AND m.rank = o.rank AND m.event_id = o.iteration_id
        JOIN gpu_ops AS g ON g.run = o.run AND g.rank = o.rank AND g.event_id = o.event_id
        GROUP BY ALL
    ),
    kernel_names AS MATERIALIZED (
        SELECT s.name, lib.stable_name(s.short_name) AS subject FROM lib.short_names('kernel_ops') AS s
    ),
    kernels AS (
        SELECT n.subject, k.* EXCLUDE (name, ns), sum(k.ns)::BIGINT AS ns
        FROM kernel_ops AS k
        JOIN kernel_names AS n ON n.name = k.name
        GROUP BY ALL
    ),
    items AS (
        SELECT s.* EXCLUDE (gap_ns, idle_ns, busy_ns), v.level, v.subject, v.ns
        FROM samples AS s
        CROSS JOIN LATERAL (VALUES
            ('phase', NULL::VARCHAR, s.gap_ns + s.idle_ns + s.busy_ns), ('part', 'between iterations', s.gap_ns), ('part', 'idle inside', s.idle_ns),
            ('part', 'busy', s.busy_ns)
        ) AS v (level, subject, ns)
        UNION ALL BY NAME
        SELECT k.phase, k.request_power, k.token_power, k.context_power, k.is_control, 'kernel' AS level, k.subject, k.ns // s.rank_count AS ns
        FROM kernels AS k
        JOIN samples AS s
            ON s.phase = k.phase AND s.request_power = k.request_power AND s.token_power = k.token_power AND s.context_power = k.context_power
            AND s.is_control = k.is_control AND s.iteration = k.iteration
    ),
    -- An iteration without the kernel contributes 0, so sums over the other iterations suffice.
    moments AS (
        SELECT
            w.load_id, i.level, i.subject,
            coalesce(sum(i.ns) FILTER (i.is_control), 0)::HUGEINT AS control_sum,
            coalesce(sum(i.ns::HUGEINT * i.ns) FILTER (i.is_control), 0)::HUGEINT AS control_squares,
            coalesce(sum(i.ns) FILTER (NOT i.is_control), 0)::HUGEINT AS test_sum,
            coalesce(sum(i.ns::HUGEINT * i.ns) FILTER (NOT i.is_control), 0)::HUGEINT AS test_squares
        FROM items AS i
        JOIN weighted AS w
            ON w.phase = i.phase AND w.request_power = i.request_power AND w.token_power = i.token_power AND w.context_power = i.context_power
        GROUP BY w.load_id, i.level, i.subject
    ),
    means AS MATERIALIZED (
        SELECT
            w.load_id, w.phase, w.is_common, w.weight, w.phase_freedom, w.control_n, w.test_n, m.level, m.subject,
            m.control_sum / nullif(w.control_n, 0) AS control_mean, m.test_sum / nullif(w.test_n, 0) AS test_mean,
            coalesce((m.control_squares * w.control_n - m.control_sum * m.control_sum)::DOUBLE / nullif(w.control_n, 0), 0)
            + coalesce((m.test_squares * w.test_n - m.test_sum * m.test_sum)::DOUBLE / nullif(w.test_n, 0), 0) AS deviations
        FROM moments AS m
        JOIN weighted AS w ON w.load_id = m.load_id
    ),
    -- Rounded terms have the same sum in any order.
    phases AS (
        SELECT
            m.phase, m.level, m.subject, NULL::BIGINT AS load_id,
            sum(round(m.weight * m.control_mean, 3)::DECIMAL(38, 3))::DOUBLE AS control_mean,
            sum(round(m.weight * m.test_mean, 3)::DECIMAL(38, 3))::DOUBLE AS test_mean,
            sum(round(m.deviations)::HUGEINT)::DOUBLE / nullif(any_value(m.phase_freedom), 0) AS variance,
            (
                SELECT sum(round(1e12 * w.weight * w.weight * (1 / w.control_n + 1 / w.test_n))::HUGEINT)::DOUBLE / 1e12
                FROM weighted AS w
                WHERE w.phase = m.phase AND w.is_common
            ) AS spread,
            any_value(m.phase_freedom) AS freedom
        FROM means AS m
        WHERE m.is_common
        GROUP BY m.phase, m.level, m.subject
    ),
    rows_of_loads AS (
        SELECT
            m.phase, 'load' AS level, NULL::VARCHAR AS subject, m.load_id, m.control_mean, m.test_mean,
            m.deviations / nullif(m.control_n + m.test_n - 2, 0) AS variance, 1 / nullif(m.control_n, 0) + 1 / nullif(m.test_n, 0) AS spread,
            m.control_n + m.test_n - 2 AS freedom
        FROM means AS m
        WHERE m.level = 'phase'
    ),
    -- Phases without a common load.
    others AS (
        SELECT
            j.phase, 'phase' AS level,
            CASE WHEN sum(j.control_n) = 0 THEN 'only in test' WHEN sum(j.test_n) = 0 THEN 'only in control' ELSE 'no common load' END AS verdict,
            sum(j.control_n)::BIGINT AS control_n, sum(j.test_n)::BIGINT AS test_n
        FROM judged AS j
        GROUP BY j.phase
        HAVING NOT bool_or(j.is_common)
    ),
    compared AS (
        SELECT
            r.*, r.test_mean - r.control_mean AS difference,
            CASE WHEN r.freedom > 0 THEN sqrt(r.variance * r.spread) * CASE WHEN r.level IN ('phase', 'load') THEN lib.student_t(false, r.freedom) ELSE lib.student_t(true, r.freedom) END END AS noise_ns,
            max(CASE WHEN r.level = 'phase' THEN r.control_mean END) OVER (PARTITION BY r.phase) AS phase_mean
        FROM (FROM phases UNION ALL BY NAME FROM rows_of_loads) AS r
    ),
    sized AS (
        SELECT
            c.*, c.level IN ('phase', 'load') AS is_whole,
            abs(c.difference) <= CASE
                WHEN is_whole THEN 0.005 * c.control_mean
                WHEN c.noise_ns IS NULL THEN 0.01 * c.phase_mean
                ELSE 0.001 * c.phase_mean
            END AS is_small,
            -- If the noise exceeds this limit, the verdict on a difference within the noise is unknown.
            coalesce(c.noise_ns > CASE WHEN is_whole THEN 0.02 * c.control_mean ELSE 0.01 * c.phase_mean END, true) AND c.difference <> 0 AS is_unknown
        FROM compared AS c
    ),
    weighed AS (
        SELECT s.*, NOT s.is_small AND CASE WHEN s.noise_ns IS NULL THEN NOT s.is_whole ELSE abs(s.difference) > s.noise_ns END AS differs
        FROM sized AS s
    ),
    -- Mean tokens per iteration, over all loads that both runs have.
    rates AS (
        SELECT
            w.phase,
            CASE WHEN count(w.control_tokens) = count(*) THEN sum(round(w.control_tokens * w.weight, 6)::DECIMAL(38, 6))::DOUBLE END AS control_tokens,
            CASE WHEN count(w.test_tokens) = count(*) THEN sum(round(w.test_tokens * w.weight, 6)::DECIMAL(38, 6))::DOUBLE END AS test_tokens,
            CASE WHEN count(w.control_outputs) = count(*) THEN sum(round(w.control_outputs * w.weight, 6)::DECIMAL(38, 6))::DOUBLE END AS control_outputs,
            CASE WHEN count(w.test_outputs) = count(*) THEN sum(round(w.test_outputs * w.weight, 6)::DECIMAL(38, 6))::DOUBLE END AS test_outputs,
            sum(w.control_n)::BIGINT AS control_n, sum(w.test_n)::BIGINT AS test_n
        FROM weighted AS w
        WHERE w.is_common
        GROUP BY w.phase
    ),
    told AS (
        SELECT
            c.phase, c.level, c.subject, c.load_id, c.control_mean, c.test_mean, c.difference, c.noise_ns,
            coalesce(c.differs, false) AND coalesce(j.is_common, true) AS is_change,
            CASE
                WHEN j.control_n = 0 THEN 'only in test'
                WHEN j.test_n = 0 THEN 'only in control'
                WHEN NOT j.is_common THEN 'other load'
                WHEN NOT c.differs AND c.is_unknown THEN 'unknown'
                WHEN NOT c.differs AND c.is_small THEN 'unchanged'
                WHEN NOT c.differs THEN 'within noise'
                WHEN c.level = 'kernel' AND c.control_mean = 0 THEN 'added'
                WHEN c.level = 'kernel' AND c.test_mean = 0 THEN 'removed'
                WHEN c.level = 'part' AND c.subject <> 'busy' THEN CASE WHEN c.difference > 0 THEN 'longer' ELSE 'shorter' END
                WHEN c.difference > 0 THEN 'slower'
                ELSE 'faster'
            END AS verdict,
            j.request_power, j.token_power, j.context_power,
            coalesce(j.control_n, r.control_n) AS control_n, coalesce(j.test_n, r.test_n) AS test_n,
            CASE WHEN c.level = 'phase' THEN r.control_tokens WHEN j.is_common THEN j.control_tokens END AS control_tokens,
            CASE WHEN c.level = 'phase' THEN r.test_tokens WHEN j.is_common THEN j.test_tokens END AS test_tokens,
            CASE WHEN c.level = 'phase' THEN r.control_outputs WHEN j.is_common THEN j.control_outputs END AS control_outputs,
            CASE WHEN c.level = 'phase' THEN r.test_outputs WHEN j.is_common THEN j.test_outputs END AS test_outputs
        FROM weighed AS c
        LEFT JOIN judged AS j ON j.load_id = c.load_id
        LEFT JOIN rates AS r ON r.phase = c.phase
        UNION ALL BY NAME
        SELECT o.*, false AS is_change FROM others AS o
    )
SELECT
    p.control_run,
    p.test_run,
    nullif(t.phase, '') AS phase,
    t.level,
    t.subject,
    CASE WHEN t.request_power >= 0 THEN format('{}-{}', 1 << t.request_power, (2 << t.request_power) - 1) END AS request_range,
    CASE WHEN t.token_power >= 0 THEN format('{}-{}', 1::BIGINT << t.token_power, (2::BIGINT << t.token_power) - 1) END AS token_range,
    CASE WHEN t.context_power >= 0 THEN format('{}-{}', 1::BIGINT << t.context_power, (2::BIGINT << t.context_power) - 1) END AS context_range,
    round(t.control_mean)::BIGINT AS control_ns,
    round(t.test_mean)::BIGINT AS test_ns,
    round(t.difference)::BIGINT AS diff_ns,
    100 * t.difference / nullif(t.control_mean, 0) AS diff_pct,
    t.noise_ns,
    100::DOUBLE * t.noise_ns / nullif(t.control_mean, 0) AS noise_pct,
    t.is_change,
    t.verdict,
    1e9 * t.control_tokens / nullif(t.control_mean, 0) AS control_input_tokens_per_s,
    1e9 * t.test_tokens / nullif(t.test_mean, 0) AS test_input_tokens_per_s,
    1e9 * t.control_outputs / nullif(t.control_mean, 0) AS control_min_output_tokens_per_s,
    1e9 * t.test_outputs / nullif(t.test_mean, 0) AS test_min_output_tokens_per_s,
    t.control_n AS control_iteration_count,
    t.test_n AS test_iteration_count
FROM told AS t
CROSS JOIN pair AS p
ORDER BY t.phase, list_position(['phase', 'load', 'part', 'kernel'], t.level), abs(t.difference) DESC NULLS LAST, t.subject, t.request_power, t.token_power, t.context_power
