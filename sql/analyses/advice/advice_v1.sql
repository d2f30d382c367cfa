-- Recommendations, largest possible saving first: what to change, the maximum saving, and how to verify the effect.
--
-- The saving of a rule is an upper bound, not a forecast. It never exceeds the part of step time that the rule covers
-- (idle time, exposed transfer or wait, exposed copies, computation): even a perfect fix cannot save more. Thresholds
-- and shares are of recorded step time (`step_accounting`). The savings of two rules may cover the same time, so they
-- must not be added. combined_saved_ns counts shared time once. A rule returns no row if its share
-- of step time is too small to matter; the table advice_rules states the thresholds and their sources. If no rule saves
-- 3 % of a run's step time, largest_loss names the largest cost and the analysis that shows it. A capture of fewer than
-- 20 events, with at most one operator and no device activity, is too short for a recommendation, such as the last one
-- of a schedule that was cut off.
--
-- Title: What to do
-- Shown: rule, rank, step_saved_ns, saved_pct, subject, message, remedy, severity, next_analysis, saved_ns, position
-- Status: experimental
-- Since: 0.1
-- Reference: TensorBoard profiler plugin recommendations, torch.profiler pattern matcher, XProf, TraceLens, Nsight Systems expert rules
-- Needs: GPU activity or host operators; steps need the profiler's schedule, and lines need with_stack
CREATE OR REPLACE MACRO advice_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Profiler steps to include; NULL means every step.
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Minimum saved_pct of the rules to show [%]; rules whose saving is unknown are always shown.
    min_pct DOUBLE := 0.0
) AS TABLE
-- Columns:
--   run            VARCHAR         Run name.
--   position       BIGINT [1]      Position of the rule in its run, ordered by possible saving and the same on all ranks; slow_link precedes exposed_transfer, which it explains.
--   rule           VARCHAR         Name of the rule.
--   title          VARCHAR         Recommendation in a few words.
--   rank           INTEGER         Rank of the process.
--   is_worst       BOOLEAN         Whether the rank has the largest saving of all ranks for this rule; true in one row per run and rule.
--   rank_count     BIGINT [count]  Number of ranks of the run that the rule applies to.
--   severity       VARCHAR         high if saved_pct is at least 10, medium if at least 3, otherwise low; medium if the saving is unknown.
--   saved_ns       BIGINT [ns]     Upper bound of the saving over all steps; NULL if unknown.
--   saved_pct      DOUBLE [%]      saved_ns as a share of recorded step time.
--   combined_saved_ns    BIGINT [ns]  Upper bound of the combined saving of all rules on the rank, regardless of min_pct; time shared by rules counts once.
--   combined_saved_pct   DOUBLE [%]   combined_saved_ns as a share of recorded step time.
--   step_saved_ns  DOUBLE [ns]     Upper bound of the saving per step; NULL in a trace without steps.
--   confidence     VARCHAR         high: recorded directly; medium: inferred from kernel names or shares; low: a hint.
--   subject        VARCHAR         Operator, kernel, call or annotation with the largest contribution; NULL if it has no name.
--   event_count    BIGINT [count]  Number of events or gaps that the finding is based on.
--   affected_ns    BIGINT [ns]     Total duration of these events or gaps.
--   message_code   VARCHAR         Code of the message in the table messages.
--   message        VARCHAR         Finding in one sentence with its figures.
--   remedy         VARCHAR         Recommended change.
--   next_analysis  VARCHAR         Analysis that shows more.
--   evidence_sql   VARCHAR         Query that shows the evidence.
--   event_id       BIGINT          event_id of an example; NULL if there is none.
--   finding_id     VARCHAR         Id of the finding; stable while run, rank, rule and subject are the same.
WITH
    spans AS MATERIALIZED (
        FROM lib.step_sums(runs, ranks, steps, include_last_profiler_step)
    ),
    steps_in_scope AS MATERIALIZED (
        SELECT p.run, p.rank, p.ts, p.ts + p.step_ns AS end_ts
        FROM lib.scoped_steps(runs, ranks, steps, include_last_profiler_step) AS p
    ),
    with_device AS MATERIALIZED (
        FROM lib.device_ranks(runs, ranks)
    ),
    too_short AS MATERIALIZED (
        FROM lib._advice_too_short(runs, ranks, 'with_device')
    ),
    parts AS MATERIALIZED (
        FROM lib.idle_parts(runs, ranks, steps, include_last_profiler_step)
    ),
    idle AS MATERIALIZED (
        FROM lib.caused_idle(runs, ranks, 'parts', 'operator')
    ),
    launch_lengths AS MATERIALIZED (
        FROM lib.launch_lengths(runs, ranks)
    ),
    host AS MATERIALIZED (
        FROM lib._advice_host(runs, ranks, 'steps_in_scope', 'with_device', 'parts', 'spans')
    ),
    kernels AS MATERIALIZED (
        FROM lib._advice_kernels(runs, ranks, steps, include_last_profiler_step)
    ),
    sizes AS MATERIALIZED (
        FROM lib._advice_message_sizes(runs, ranks, steps, include_last_profiler_step)
    ),
    modeled AS MATERIALIZED (
        FROM lib.modeled_calls(runs, ranks, steps, include_last_profiler_step, NULL, NULL)
    ),
    pipeline AS MATERIALIZED (
        FROM lib.pipeline_ranks(runs)
    ),
    blocks AS MATERIALIZED (
        SELECT b.* FROM lib.rank_blocks(runs, 'pipeline') AS b
    ),
    transfers AS MATERIALIZED (
        SELECT t.* FROM lib.link_blocks(runs, 'blocks') AS t
    ),
    items AS MATERIALIZED (
        SELECT i.* FROM lib.compared_items('blocks', 'transfers', lib.judging().least_pct) AS i
    ),
    judged AS MATERIALIZED (
        SELECT j.* FROM lib.judged_blocks('items') AS j
    ),
    waits AS MATERIALIZED (
        SELECT w.* FROM lib.caused_waits(runs) AS w
    ),
    -- Use all ranks: the straggler may be a rank that was not requested.
    verdicts AS MATERIALIZED (
        SELECT j.* FROM lib.late_ranks(runs, 'blocks', 'judged', 'waits') AS j
    ),
    causes AS MATERIALIZED (
        SELECT c.* FROM lib.lateness_causes('blocks', 'verdicts') AS c
    ),
    late AS MATERIALIZED (
        FROM lib._advice_late_rank('spans', 'verdicts', 'causes', NULL)
    ),
    stages AS MATERIALIZED (
        FROM lib._advice_slow_stage('spans', 'judged', 'pipeline', ranks)
    ),
    slow_transfers AS MATERIALIZED (
        FROM lib._advice_slow_link('spans', 'blocks', 'transfers', 'judged', runs, ranks)
    ),
    holding_up AS (
        SELECT j.run FROM late AS j
        UNION ALL
        SELECT j.run FROM stages AS j
        UNION ALL
        SELECT j.run FROM slow_transfers AS j
    ),
    annotated AS MATERIALIZED (
        SELECT 'annotation' AS detected_by, a.* FROM lib.annotated_iterations(runs, ranks) AS a
    ),
    served_ops AS MATERIALIZED (
        FROM lib.iteration_ops('annotated', runs, ranks)
    ),
    named_iterations AS MATERIALIZED (
        FROM lib.measured_iterations('annotated', 'served_ops')
    ),
    served AS MATERIALIZED (
        FROM lib._advice_serving('steps_in_scope', 'parts', 'named_iterations')
    ),
    experts AS MATERIALIZED (
        FROM lib._advice_experts(runs, ranks, steps, include_last_profiler_step)
    ),
    idle_time AS MATERIALIZED (
        FROM lib._advice_idle('spans', 'idle', 'launch_lengths')
    ),
    device_time AS MATERIALIZED (
        FROM lib._advice_device('spans', 'kernels')
    ),
    rules AS (
        SELECT DISTINCT r.rule, r.part, r.precedence FROM advice_rules AS r
    ),
    of_rules AS MATERIALIZED (
        FROM lib._advice_by_rule('spans', 'idle_time', 'device_time', 'host', 'served', 'experts', 'modeled')
        UNION ALL BY NAME
        FROM lib._advice_exposed_transfer('spans', 'device_time', 'sizes')
        UNION ALL BY NAME
        FROM lib._advice_collective_waits('spans', 'sizes', 'with_device', 'holding_up', 'verdicts')
        UNION ALL BY NAME
        FROM lib._advice_serving_all_reduce('spans', 'device_time', 'named_iterations')
        UNION ALL BY NAME
        FROM lib._advice_slow_attention('spans', 'modeled', 'annotated', 'served_ops', runs, ranks)
        UNION ALL BY NAME
        FROM lib._advice_unfused_optimizer('spans', runs, ranks, steps, include_last_profiler_step)
        UNION ALL BY NAME
        FROM lib._advice_dynamic_shapes('spans', 'host', runs, ranks, steps, include_last_profiler_step)
        UNION ALL BY NAME
        FROM lib._advice_sync_batch_norm('spans', runs, ranks, steps, include_last_profiler_step)
        UNION ALL BY NAME
        FROM lib._advice_conv_bias('spans', runs, ranks, steps, include_last_profiler_step)
        UNION ALL BY NAME
        FROM late AS j WHERE j.saved_ns IS NOT NULL AND lib.is_requested(ranks, j.rank)
        UNION ALL BY NAME
        FROM stages
        UNION ALL BY NAME
        FROM slow_transfers
        UNION ALL BY NAME
        FROM lib._advice_data_parallel(runs, ranks)
        UNION ALL BY NAME
        FROM lib._advice_gloo_for_gpus(runs, ranks)
        UNION ALL BY NAME
        FROM lib._advice_memory_near_limit(runs, ranks)
    ),
    parted AS MATERIALIZED (
        SELECT f.*, r.part, r.precedence
        FROM of_rules AS f
        JOIN rules AS r ON r.rule = f.rule
        ANTI JOIN too_short AS t ON t.run = f.run AND t.rank = f.rank
    ),
    claimed AS (
        SELECT p.run, p.rank, p.part, sum(p.saved_ns) AS ns
        FROM parted AS p
        WHERE p.precedence = 'specific'
        GROUP BY ALL
    ),
    -- Rules for serving engines and expert parallelism replace general rules for the same loss.
    ruled AS MATERIALIZED (
        SELECT p.*
        FROM parted AS p
        LEFT JOIN claimed AS c ON c.run = p.run AND c.rank = p.rank AND c.part = p.part AND p.precedence = 'general'
        WHERE c.run IS NULL OR 2 * c.ns < p.saved_ns
    ),
    -- If no rule saves 3 %, report the largest loss.
    found AS (
        FROM ruled
        UNION ALL BY NAME
        FROM lib._advice_largest_loss(runs, ranks, steps, include_last_profiler_step, 'ruled', 'spans', 'too_short')
    ),
    -- Rules for one part of step time save at most that part. Rules about idle time cover different causes, and rules
    -- about kernels different kernels: short ones (small_kernels), of unfused attention, matrix products in full
    -- single precision, misaligned ones, and all others (slow_products).
    -- A rule whose time is contained in the time of another active rule adds nothing.
    saving AS (
        SELECT
            r.run, r.rank, r.rule, r.part, r.saved_ns,
            bool_or(r.rule IN ('host_work', 'launch_bound')) OVER of_rank AS has_host,
            bool_or(r.rule IN ('elementwise_kernels', 'small_kernels')) OVER of_rank AS has_elementwise
        FROM ruled AS r
        WHERE r.saved_ns IS NOT NULL
        WINDOW of_rank AS (PARTITION BY r.run, r.rank)
    ),
    saved_parts AS (
        SELECT r.run, r.rank, r.part, sum(r.saved_ns) AS ns
        FROM saving AS r
        WHERE
            NOT (r.has_host AND r.rule IN ('garbage_collection', 'indexing_loops', 'filled_copies'))
            AND NOT (r.has_elementwise AND r.rule = 'conv_bias')
        GROUP BY r.run, r.rank, r.part
    ),
    bounded AS (
        SELECT
            p.run, p.rank, p.part, s.recorded_ns,
            CASE p.part
                WHEN 'idle' THEN least(p.ns, s.idle_ns)
                WHEN 'compute' THEN least(p.ns, s.compute_ns)
                WHEN 'communication' THEN least(p.ns, s.transfer_ns + s.unmatched_ns + s.wait_ns)
                WHEN 'memory' THEN least(p.ns, s.memory_ns)
                ELSE p.ns
            END AS ns
        FROM saved_parts AS p
        JOIN spans AS s ON s.run = p.run AND s.rank = p.rank
    ),
    own_savings AS (
        SELECT s.run, s.rank, coalesce(sum(b.ns), 0) AS ns
        FROM spans AS s
        LEFT JOIN bounded AS b ON b.run = s.run AND b.rank = s.rank AND b.part IN ('idle', 'compute', 'memory')
        GROUP BY s.run, s.rank
    ),
    -- late_rank counts only the lateness that no other rule explains. A rule on the rank's own work explains what it saves
    -- there beyond the median of the run's other ranks; without other ranks in scope, all of it.
    explained AS (
        SELECT b.run, b.rank, any_value(o.ns) - coalesce(median(w.ns), 0) AS ns
        FROM bounded AS b
        JOIN own_savings AS o ON o.run = b.run AND o.rank = b.rank
        LEFT JOIN own_savings AS w ON w.run = b.run AND w.rank != b.rank
        WHERE b.part = 'lateness'
        GROUP BY b.run, b.rank
    ),
    combined AS (
        SELECT
            b.run, b.rank,
            least(
                sum(CASE b.part WHEN 'lateness' THEN greatest(b.ns - greatest(e.ns, 0), 0) ELSE b.ns END),
                any_value(b.recorded_ns)
            )::BIGINT AS combined_ns
        FROM bounded AS b
        LEFT JOIN explained AS e ON e.run = b.run AND e.rank = b.rank
        GROUP BY b.run, b.rank
    ),
    kernel_names AS MATERIALIZED (
        SELECT DISTINCT f.subject AS name
        FROM found AS f
        WHERE f.subject IN (SELECT k.name FROM kernels AS k)
    ),
    short AS (
        SELECT n.name, n.short_name FROM lib.short_names('kernel_names') AS n
    ),
    -- Recording Python stacks slows the host down.
    stacked AS (
        SELECT DISTINCT c.run, c.rank, true AS has_stacks FROM python_calls AS c WHERE lib.is_requested(runs, c.run)
    ),
    gpu AS (
        SELECT k.run, k.rank, sum(k.total_ns) AS gpu_ns
        FROM kernels AS k
        WHERE k.class IN ('computation', 'communication', 'memory')
        GROUP BY k.run, k.rank
    ),
    measured AS (
        SELECT
            f.* REPLACE (
                coalesce(n.short_name, f.subject) AS subject,
                CASE WHEN p.has_stacks AND f.rule IN ('launch_bound', 'host_work') AND f.confidence = 'high' THEN 'medium' ELSE f.confidence END AS confidence
            ),
            coalesce(p.has_stacks, false) AS has_stacks, s.step_count, s.recorded_ns, coalesce(s.has_steps, false) AS has_steps,
            -- Below 1 %, the recorded part is not worth a mention.
            coalesce(s.unrecorded_ns >= 0.01 * s.step_ns AND s.unrecorded_ns > 0, false) AS is_partial,
            100 * (f.saved_ns / s.recorded_ns) AS saved_pct,
            -- Operations may run after the step that launched them, or next to each other, and take longer than all steps.
            coalesce((f.message.fields ->> '$.share_pct')::DOUBLE > 100, false) AS exceeds_steps,
            100 * (f.affected_ns / greatest(g.gpu_ns, f.affected_ns)) AS gpu_pct
        FROM found AS f
        LEFT JOIN gpu AS g ON g.run = f.run AND g.rank = f.rank
        LEFT JOIN spans AS s ON s.run = f.run AND s.rank = f.rank
        LEFT JOIN short AS n ON n.name = f.subject
        LEFT JOIN stacked AS p ON p.run = f.run AND p.rank = f.rank
    ),
    ranked AS (
        SELECT
            m.*,
            count(*) OVER rule AS rank_count,
            -- A slow link is a reason for exposed transfers, so both stand together, the reason first.
            max(m.saved_ns) OVER (PARTITION BY m.run, CASE m.rule WHEN 'slow_link' THEN 'exposed_transfer' ELSE m.rule END) AS most_ns,
            row_number() OVER (PARTITION BY m.run, m.rule ORDER BY m.saved_ns DESC NULLS LAST, m.rank) = 1 AS is_worst
        FROM measured AS m
        -- Less than a microsecond is not worth a change.
        WHERE coalesce(m.saved_pct >= min_pct AND m.saved_ns >= 1000, true)
        WINDOW rule AS (PARTITION BY m.run, m.rule)
    )
SELECT
    r.run,
    dense_rank() OVER (PARTITION BY r.run ORDER BY r.most_ns DESC NULLS LAST, r.rule IN ('largest_loss', 'exposed_transfer'), r.rule) AS position,
    r.rule,
    t.title,
    r.rank,
    r.is_worst,
    r.rank_count,
    CASE WHEN r.saved_pct >= 10 THEN 'high' WHEN r.saved_pct >= 3 OR r.saved_pct IS NULL THEN 'medium' ELSE 'low' END AS severity,
    r.saved_ns::BIGINT AS saved_ns,
    r.saved_pct,
    c.combined_ns AS combined_saved_ns,
    100 * (c.combined_ns / r.recorded_ns) AS combined_saved_pct,
    CASE WHEN r.has_steps THEN r.saved_ns / r.step_count END AS step_saved_ns,
    r.confidence,
    r.subject,
    r.event_count,
    r.affected_ns,
    r.message.code AS message_code,
    lib.message_text(t.message, lib.with_fields(r.message.fields, {
        'has_steps': r.has_steps, 'is_partial': r.is_partial, 'has_stacks': r.has_stacks, 'exceeds_steps': r.exceeds_steps,
        'share_pct': CASE WHEN r.exceeds_steps THEN r.gpu_pct ELSE (r.message.fields ->> '$.share_pct')::DOUBLE END
    })) AS message,
    t.remedy,
    r.next_analysis,
    r.evidence_sql,
    r.event_id,
    substr(md5(concat_ws(chr(31), r.run, r.rank, r.rule, r.subject)), 1, 12) AS finding_id
FROM ranked AS r
LEFT JOIN combined AS c ON c.run = r.run AND c.rank = r.rank
LEFT JOIN messages AS t ON t.code = r.message.code
ORDER BY r.run, position, r.is_worst DESC, r.rank
