-- Stragglers: the verdict on each rank, its cost to the other ranks, its cause, and what to inspect.
--
-- In a block of time, own work, exposed transfer and exposed wait add up to the same total on every rank. A straggler
-- has more own work, and the other ranks wait for it. Each rank is compared, block by block, with its peers: the ranks
-- of its role and pipeline stage, or the ranks of its role to which collectives connect it. Ranks of different roles
-- are never compared. Each step is a block, also the last one, which other analyses exclude. Without steps, blocks are
-- equal windows.
--
-- - straggler: more own work than its peers, and its peers wait for it, both by at least min_pct. Chance produces a
--   false straggler in 6 of 1,000 jobs.
-- - intermittent: a straggler in some blocks only.
-- - suspected: too little data to be certain; odds, the probability that the lateness is chance, is above the limit of a
--   straggler (0.6 %, and less for few blocks).
-- - none: nothing found.
-- - unknown: no comparison is possible; verdict_reason explains why.
--
-- A rank on a slow link has the cause `slower transfer` and is not a straggler, because its link is slow, not its
-- work. Pipeline stages are compared with each other by their median rank. A slow stage therefore does not make its
-- ranks stragglers, and a straggler does not make its stage slow.
--
-- Title: Stragglers: ranks that delay the others
-- Shown: rank, verdict, cause, late_ns, subject, message, verdict_reason
-- Also: slow rank, slowest rank, late rank, imbalance, straggler
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a verdict needs all steps of a capture
-- Reference: TraceLens straggler_summary, msprof-analyze slow_rank
-- Needs: GPU activity of two ranks that communicate
-- Report: first 1
-- Chart:
--   mark = "ranks"
--   title = "Stragglers"
--   notes = [
--     "Own work (compute, exposed copies, idle time) beyond the median of the peers. Waits and transfers are not own work.",
--   ]
--   known = "is_straggler"
--   empty = "No verdict is possible."
--   reason = "verdict_reason"
--   value = "late_pct"
--   measure = "Extra work"
--   legend = "Verdict"
--   part = "verdict"
--   parts.straggler = ["straggler", "outlier"]
--   parts.intermittent = ["intermittent", "#E69F00"]
--   parts.suspected = ["suspected", "#F0C571"]
--   parts.none = ["no straggler", "normal"]
--   parts.unknown = ["unknown", "#E8E8E8"]
--   tooltip.late_ns = "Extra work"
--   tooltip.cost_pct = "Extra wait of the peers"
--   tooltip.late_step_count = "Late steps"
--   tooltip.cause = "Cause"
--   tooltip.subject = "Mostly in"
CREATE OR REPLACE MACRO stragglers_v1(
    runs VARCHAR[] := NULL,
    -- Ranks to show; NULL means every rank. The comparison uses all ranks.
    ranks INTEGER[] := NULL,
    -- Minimum additional wait of the other ranks, as a share of the compared time [%].
    min_pct DOUBLE := 1.0
) AS TABLE
-- Columns:
--   run                 VARCHAR         Run name.
--   rank                INTEGER         Rank of the process.
--   verdict             VARCHAR         Verdict on the rank: straggler, suspected, intermittent, none or unknown.
--   is_straggler        BOOLEAN         Whether the verdict is straggler; NULL if it is unknown.
--   verdict_reason      VARCHAR         Why the verdict is suspected, intermittent or unknown, or why the verdict none is uncertain.
--   message_code        VARCHAR         Code of the message, or of the reason, in the table messages.
--   message             VARCHAR         Verdict and cause in one sentence; NULL for none and unknown, unless the rank has a slow link or a slow stage.
--   odds                DOUBLE [1]      Probability that chance alone makes any rank of the run this late; NULL if unknown.
--   late_step_count     BIGINT [count]  Number of blocks in which the rank has more own work than its peers, by at least min_pct and three times the noise.
--   step_count          BIGINT [count]  Number of compared blocks: the steps, including the last one, or equal windows if the trace has no steps.
--   cause               VARCHAR         slower compute, throttling, more compute, host-bound, data loading, checkpoint, copies, slower transfer or unknown; NULL: not late.
--   cause_share_pct     DOUBLE [%]      Share of the lateness that the cause explains; below 50 % the cause is unknown.
--   cause_ns            BIGINT [ns]     Additional time due to the cause: in compute, copies, idle time or transfers of the link.
--   subject             VARCHAR         Operator, kernel, annotation or link that differs most from the peers.
--   subject_ns          BIGINT [ns]     Additional time in subject.
--   kernel              VARCHAR         Kernel that differs most, if compute takes longer.
--   slowdown            DOUBLE [1]      Duration of the rank's kernels relative to the same calls on its peers; for a slow link, duration of its transfers relative to other links.
--   stage               INTEGER         Pipeline stage, from 0; NULL without pipeline parallelism.
--   is_slow_stage       BOOLEAN         Whether the rank's stage has more own work than the other stages, by at least 5 % of the compared time, and the other stages wait for it; NULL if unknown.
--   stage_late_pct      DOUBLE [%]      Additional own work of the rank's stage compared with the median of the other stages, as a share of the compared time.
--   stage_cost_pct      DOUBLE [%]      Additional wait of the other stages compared with the rank's stage, as a share of the compared time.
--   late_ns             BIGINT [ns]     Additional own work of the rank, compared with the median of its peers.
--   late_pct            DOUBLE [%]      late_ns as a share of the compared time.
--   cost_ns             BIGINT [ns]     Median additional exposed wait of the rank's peers, compared with the rank's own wait, at most the time by which the rank arrives late in its collectives.
--   cost_pct            DOUBLE [%]      cost_ns as a share of the compared time.
--   wait_caused_ns      BIGINT [ns]     Time that other ranks wait for this rank, minus its own earlier additional waits.
--   wait_caused_pct     DOUBLE [%]      wait_caused_ns as a share of the capture time, summed over the ranks that share a group with this rank.
--   wait_ns             BIGINT [ns]     Sum of the waits of the rank's own collectives until the last rank arrives, overlapped or exposed.
--   last_arrival_count  BIGINT [count]  Collectives in which the rank arrived last.
--   last_arrival_pct    DOUBLE [%]      last_arrival_count as a share of collective_count.
--   collective_count    BIGINT [count]  Number of collectives of the rank whose end times agree, excluding sends and receives.
--   trusted_pct         DOUBLE [%]      Share of the rank's collectives whose end times agree.
--   next_analysis       VARCHAR         Analysis that shows more.
WITH
    pipeline AS (
        FROM lib.pipeline_ranks(runs)
    ),
    blocks AS MATERIALIZED (
        SELECT b.* FROM lib.rank_blocks(runs, 'pipeline') AS b
    ),
    transfers AS MATERIALIZED (
        SELECT t.* FROM lib.link_blocks(runs, 'blocks') AS t
    ),
    items AS MATERIALIZED (
        SELECT i.* FROM lib.compared_items('blocks', 'transfers', min_pct) AS i
    ),
    judged_items AS MATERIALIZED (
        SELECT j.* FROM lib.judged_blocks('items') AS j
    ),
    waits AS MATERIALIZED (
        SELECT w.* FROM lib.caused_waits(runs) AS w
    ),
    judged AS MATERIALIZED (
        SELECT j.* FROM lib.late_ranks(runs, 'blocks', 'judged_items', 'waits') AS j
    ),
    causes AS MATERIALIZED (
        SELECT c.* FROM lib.lateness_causes('blocks', 'judged') AS c
    ),
    kernels AS MATERIALIZED (
        SELECT c.kernel AS name FROM causes AS c WHERE c.kernel IS NOT NULL
    ),
    short AS MATERIALIZED (
        SELECT n.name, n.short_name FROM lib.short_names('kernels') AS n
    ),
    communicating AS MATERIALIZED (
        SELECT m.run, m.rank, bool_or(m.is_complete AND NOT m.is_startup) AS is_matched, bool_and(m.on_host) AS on_host
        FROM matched_collectives AS m
        WHERE lib.is_requested(runs, m.run)
        GROUP BY m.run, m.rank
    ),
    stages AS MATERIALIZED (
        SELECT g.* FROM lib.slow_stages('judged_items') AS g
    ),
    sizes AS MATERIALIZED (
        SELECT k.run, max(k.world_size) AS world_size, max(k.world_size) - count(*) AS missing_count, count(*) AS rank_count
        FROM ranks AS k
        WHERE lib.is_requested(runs, k.run)
        GROUP BY k.run
    ),
    only_dumped AS (
        SELECT k.run, k.rank
        FROM ranks AS k
        SEMI JOIN fr_groups AS g ON g.run = k.run AND g.rank = k.rank
        WHERE k.event_count = 0 AND lib.is_requested(runs, k.run)
    ),
    -- Keep the most expensive link of each rank.
    link_ends AS (
        SELECT l.*, unnest(l.link_ranks) AS rank FROM lib.slow_links(runs, 'blocks', 'transfers', 'judged_items', min_pct) AS l
    ),
    slow_links AS MATERIALIZED (
        SELECT l.* FROM link_ends AS l QUALIFY row_number() OVER (PARTITION BY l.run, l.rank ORDER BY l.cost_ns DESC, l.channel_id) = 1
    ),
    compared AS MATERIALIZED (
        SELECT
            j.*, c.* EXCLUDE (run, rank, subject, window_ns), m.is_matched, m.on_host,
            w.run_ns, w.collective_count, w.last_arrival_count, w.wait_ns, w.wait_caused_ns, w.peer_count AS waiting_count,
            j.verdict IN ('straggler', 'suspected', 'intermittent') AS is_named,
            coalesce(s.short_name, c.subject) AS subject,
            c.window_ns AS cause_window_ns,
            100 * (j.cost_ns / nullif(j.window_ns, 0)) AS cost_pct,
            l.channel_id IS NOT NULL AS has_slow_link, l.channel, l.collective, l.common_rank, l.common_host, l.ratio AS link_ratio, l.late_ns AS link_late_ns,
            100 * (l.cost_ns / l.window_ns) AS link_cost_pct,
            g.is_slow AS is_slow_stage, z.world_size, z.missing_count, z.rank_count, u.rank IS NOT NULL AS is_only_dumped,
            100 * (g.late_ns / nullif(g.window_ns, 0)) AS stage_late_pct,
            100 * (g.cost_ns / nullif(g.window_ns, 0)) AS stage_cost_pct
        FROM judged AS j
        LEFT JOIN causes AS c ON c.run = j.run AND c.rank = j.rank
        -- If no operator launched the kernel, the subject is the kernel: show its short name.
        LEFT JOIN short AS s ON s.name = c.subject AND c.subject = c.kernel
        LEFT JOIN communicating AS m ON m.run = j.run AND m.rank = j.rank
        LEFT JOIN waits AS w ON w.run = j.run AND w.rank = j.rank
        LEFT JOIN slow_links AS l ON l.run = j.run AND l.rank = j.rank
        LEFT JOIN stages AS g ON g.run = j.run AND g.stage = j.stage
        LEFT JOIN sizes AS z ON z.run = j.run
        LEFT JOIN only_dumped AS u ON u.run = j.run AND u.rank = j.rank
        WHERE lib.is_requested(ranks, j.rank)
    ),
    explained AS MATERIALIZED (
        SELECT
            t.*,
            CASE
                WHEN t.reason_code = 'stragglers.waits_uncertain' THEN lib.message('stragglers.waits_uncertain', NULL)
                WHEN t.reason_code = 'few_blocks' THEN lib.message('stragglers.few_blocks', {'odds_pct': round(100 * t.odds, 2), 'block_count': t.step_count})
                WHEN t.reason_code = 'few_data' THEN lib.message(
                    'stragglers.few_data',
                    {
                        'odds_pct': round(100 * t.odds, 2), 'limit_pct': round(100 * t.odds_limit, 2), 'rank_count': t.peer_count + 1,
                        'block_count': t.step_count, 'block_ns': t.window_ns / t.step_count
                    }
                )
                WHEN t.reason_code = 'some_blocks' THEN lib.message(
                    'stragglers.some_blocks', {'late_block_count': t.late_step_count, 'block_count': t.step_count, 'block_ns': t.window_ns / t.step_count}
                )
                WHEN t.verdict = 'none' AND t.missing_count > 0
                    THEN lib.message('stragglers.ranks_missing', {'missing_count': t.missing_count, 'world_size': t.world_size})
                WHEN t.verdict <> 'unknown' THEN NULL
                WHEN t.is_only_dumped THEN lib.message('stragglers.no_trace', NULL)
                WHEN t.rank_count = 1 THEN lib.message('stragglers.single_rank', NULL)
                WHEN t.reason_code = 'stragglers.ends_disagree' THEN lib.message('stragglers.ends_disagree', NULL)
                WHEN t.reason_code = 'stragglers.no_peer' THEN lib.message('stragglers.no_peer', NULL)
                WHEN t.reason_code = 'stragglers.unrecorded' THEN lib.message('stragglers.unrecorded', NULL)
                WHEN t.reason_code = 'stragglers.single_step' THEN lib.message('stragglers.single_step', NULL)
                WHEN t.is_matched THEN lib.message('stragglers.too_few_collectives', NULL)
                WHEN t.is_matched IS NULL THEN lib.message('stragglers.no_communication', NULL)
                ELSE lib.message('stragglers.not_matched', NULL)
            END AS reason,
            CASE
                WHEN t.is_named AND t.cause = 'slower compute' AND t.uniform_share >= lib.judging().uniform_share
                    THEN lib.message('stragglers.slower_compute', {'slowdown': t.slowdown, 'subject': t.subject})
                WHEN t.is_named AND t.cause = 'slower compute'
                    THEN lib.message('stragglers.slower_kernels', {'slowdown': t.slowdown, 'subject': t.subject})
                WHEN t.is_named AND t.cause = 'throttling' THEN lib.message(
                    'stragglers.throttling', {'first_slowdown': t.first_third, 'last_slowdown': t.last_third, 'subject': t.subject}
                )
                WHEN t.is_named AND t.cause = 'more compute' THEN lib.message(
                    'stragglers.more_compute', {'cause_ns': t.cause_ns, 'window_ns': t.cause_window_ns, 'subject': t.subject}
                )
                WHEN t.is_named AND t.cause = 'data loading' THEN lib.message(
                    'stragglers.data_loading', {'cause_ns': t.subject_ns, 'window_ns': t.cause_window_ns, 'subject': t.subject}
                )
                WHEN t.is_named AND t.cause = 'checkpoint' THEN lib.message(
                    'stragglers.checkpoint', {'cause_ns': t.subject_ns, 'window_ns': t.cause_window_ns, 'subject': t.subject}
                )
                WHEN t.is_named AND t.cause = 'host-bound' AND t.on_host AND t.subject IS NULL
                    THEN lib.message('stragglers.outside_operators', {'cause_ns': t.cause_ns, 'window_ns': t.cause_window_ns})
                WHEN t.is_named AND t.cause = 'host-bound' AND t.on_host THEN lib.message(
                    'stragglers.host_bound_without_device', {'cause_ns': t.cause_ns, 'window_ns': t.cause_window_ns, 'subject': t.subject}
                )
                WHEN t.is_named AND t.cause = 'host-bound' AND t.subject IS NULL
                    THEN lib.message('stragglers.host_not_recorded', {'cause_ns': t.cause_ns, 'window_ns': t.cause_window_ns})
                WHEN t.is_named AND t.cause = 'host-bound' THEN lib.message(
                    'stragglers.host_bound', {'cause_ns': t.cause_ns, 'window_ns': t.cause_window_ns, 'subject': t.subject}
                )
                WHEN t.is_named AND t.cause = 'copies' THEN lib.message(
                    'stragglers.copies', {'cause_ns': t.cause_ns, 'window_ns': t.cause_window_ns, 'subject': t.subject}
                )
                WHEN t.is_named THEN lib.message('stragglers.unknown', NULL)
                WHEN t.has_slow_link AND t.rank = t.common_rank THEN lib.message('stragglers.slow_network', {'ratio': t.link_ratio, 'link_cost_pct': t.link_cost_pct})
                WHEN t.has_slow_link AND t.common_host IS NOT NULL THEN lib.message(
                    'stragglers.slow_host_network', {'common_host': t.common_host, 'channel': t.channel, 'ratio': t.link_ratio, 'link_cost_pct': t.link_cost_pct}
                )
                WHEN t.has_slow_link THEN
                    lib.message('stragglers.slow_link', {'channel': t.channel, 'ratio': t.link_ratio, 'link_cost_pct': t.link_cost_pct})
                WHEN t.is_slow_stage THEN
                    lib.message('stragglers.slow_stage', {'stage': t.stage, 'stage_late_pct': t.stage_late_pct, 'stage_cost_pct': t.stage_cost_pct})
            END AS message
        FROM compared AS t
    ),
    worded AS (
        SELECT
            n.*,
            lib.message_text(
                m.message,
                lib.with_fields(
                    n.message.fields,
                    {
                        'rank': n.rank, 'cost_pct': n.cost_pct,
                        'level': CASE n.verdict WHEN 'straggler' THEN 'Straggler' WHEN 'suspected' THEN 'Suspected straggler' ELSE 'Intermittent straggler' END
                    }
                )
            ) AS sentence,
            lib.message_text(r.message, n.reason.fields) AS reason_sentence
        FROM explained AS n
        LEFT JOIN messages AS m ON m.code = n.message.code
        LEFT JOIN messages AS r ON r.code = n.reason.code
    )
SELECT
    e.run,
    e.rank,
    e.verdict,
    e.is_late AS is_straggler,
    e.reason_sentence AS verdict_reason,
    coalesce(e.message.code, e.reason.code) AS message_code,
    e.sentence AS message,
    CASE WHEN e.verdict <> 'unknown' THEN e.odds END AS odds,
    e.late_step_count,
    e.step_count,
    CASE WHEN e.is_named THEN coalesce(e.cause, 'unknown') WHEN e.has_slow_link THEN 'slower transfer' END AS cause,
    100 * e.cause_share AS cause_share_pct,
    CASE WHEN e.is_named THEN e.cause_ns ELSE e.link_late_ns END AS cause_ns,
    CASE WHEN e.is_named THEN e.subject ELSE e.channel END AS subject,
    CASE WHEN e.is_named THEN e.subject_ns ELSE e.link_late_ns END AS subject_ns,
    e.kernel,
    CASE WHEN e.is_named THEN e.slowdown ELSE e.link_ratio END AS slowdown,
    e.stage,
    e.is_slow_stage,
    e.stage_late_pct,
    e.stage_cost_pct,
    e.late_ns,
    100 * (e.late_ns / nullif(e.window_ns, 0)) AS late_pct,
    e.cost_ns,
    e.cost_pct,
    e.wait_caused_ns,
    100 * (e.wait_caused_ns / nullif(e.waiting_count, 0) / nullif(e.run_ns, 0)) AS wait_caused_pct,
    e.wait_ns,
    e.last_arrival_count,
    100 * (e.last_arrival_count / nullif(e.collective_count, 0)) AS last_arrival_pct,
    e.collective_count,
    100 * e.trusted_share AS trusted_pct,
    CASE
        WHEN NOT e.is_named AND e.has_slow_link THEN 'slow_links'
        WHEN NOT e.is_named AND e.is_slow_stage THEN 'pipeline_stages'
        WHEN NOT e.is_named THEN NULL
        WHEN e.cause IN ('slower compute', 'throttling', 'more compute', 'copies') THEN 'kernels_across_ranks'
        WHEN e.cause IN ('data loading', 'checkpoint') THEN 'step_accounting'
        WHEN e.cause = 'host-bound' AND e.on_host THEN 'host_accounting'
        WHEN e.cause = 'host-bound' AND e.subject IS NOT NULL THEN 'idle_causes'
        ELSE 'collective_waits'
    END AS next_analysis
FROM worded AS e
ORDER BY e.run, e.rank
