-- Which ranks are late, and nobody else: what that costs, why, and what to look at.
--
-- In every collective all ranks wait for the last one. Who holds up the others is who waits least, summed
-- over all its groups: a rank that is late in one group because it waited in another has waited as long as
-- its victims. A rank is named where it waits less than the ranks it meets by min_pct of the capture, also
-- without its largest single delay; where chance would do that in 6 of 1,000 jobs at most (lateness_z against
-- lateness_z_limit); where it came last at least twice; and where the ends of nine in ten of its collectives agree
-- (trusted_pct), without which waits are none. Lateness between sender and receiver of a pipeline is not
-- judged. Why a rank is late comes from the window that all ranks have in common, in which it computes,
-- copies or idles as much more as it waits less, beside ranks that are not late.
--
-- Title: Ranks that hold up the others
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; a habit shows over all steps of a capture
-- Reference: TraceLens straggler_summary, msprof-analyze slow_rank
-- Needs: GPU activity of two ranks that communicate
-- Report: first 1
CREATE OR REPLACE MACRO stragglers_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to show; NULL means every rank. All ranks are judged.
    ranks INTEGER[] := NULL,
    -- Smallest share of the capture that others have to wait more, in percent.
    min_pct DOUBLE := 1.0
) AS TABLE
-- Columns:
--   run                 VARCHAR         Run name.
--   rank                INTEGER         Rank of the process.
--   is_straggler        BOOLEAN         It holds up the others; NULL where that cannot be judged (reason).
--   message_code        VARCHAR         Code of the message, or of the reason, in the table messages.
--   message             VARCHAR         What it means, in a sentence; NULL where it is not late.
--   cause               VARCHAR         slower compute, throttling, more compute, host-bound, data loading, copies, unknown; NULL: not late.
--   subject             VARCHAR         Operator, kernel or annotation that differs most from the other ranks.
--   subject_ns          BIGINT [ns]     How much more that takes in the common window.
--   cause_ns            BIGINT [ns]     How much more it computes, copies or idles there.
--   kernel              VARCHAR         Kernel that differs most, where the device computes longer.
--   slowdown            DOUBLE [1]      Length of its kernels over that of the same calls on other ranks.
--   cost_ns             BIGINT [ns]     Exposed wait of the others in the common window that they would gain at most.
--   cost_pct            DOUBLE [%]      The same as a share of the window.
--   excess_ns           BIGINT [ns]     How much less it waits than the median of the ranks that it meets.
--   excess_pct          DOUBLE [%]      The same as a share of the capture.
--   wait_caused_ns      BIGINT [ns]     Waits of others for it, without what it had itself waited more than they before.
--   wait_caused_pct     DOUBLE [%]      The same as a share of the time of those others.
--   wait_ns             BIGINT [ns]     Its own waits.
--   last_arrival_count  BIGINT [count]  Collectives in which it came last.
--   last_arrival_pct    DOUBLE [%]      The same as a share of its collectives.
--   collective_count    BIGINT [count]  Collectives that were looked at.
--   lateness_z          DOUBLE [1]      Its lateness in standard deviations of chance.
--   lateness_z_limit    DOUBLE [1]      What that exceeds by chance, on any rank, in 6 of 1,000 jobs.
--   trusted_pct         DOUBLE [%]      Share of its collectives whose ends agree.
--   next_analysis       VARCHAR         Analysis that shows more.
--   reason              VARCHAR         Why nothing can be judged, or why a rank that cost the others min_pct is not called late.
WITH
    judged AS MATERIALIZED (
        SELECT j.* FROM lib.late_ranks(runs, min_pct) AS j
    ),
    causes AS MATERIALIZED (
        SELECT c.* FROM lib._lateness_causes('judged') AS c
    ),
    kernels AS MATERIALIZED (
        SELECT c.kernel AS name FROM causes AS c WHERE c.kernel IS NOT NULL
    ),
    short AS (
        SELECT n.name, n.short_name FROM lib.short_names('kernels') AS n
    ),
    known AS (
        SELECT k.run, k.rank
        FROM ranks AS k
        WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
    ),
    communicating AS (
        SELECT
            m.run, m.rank, bool_or(m.is_complete AND NOT m.is_startup AND NOT m.is_p2p) AS is_matched,
            bool_and(m.on_host) AS on_host
        FROM matched_collectives AS m
        WHERE lib.is_requested(runs, m.run)
        GROUP BY m.run, m.rank
    ),
    told AS (
        SELECT
            k.run, k.rank, j.* EXCLUDE (run, rank), c.* EXCLUDE (run, rank, cause, subject), m.is_matched, m.on_host,
            CASE WHEN j.is_late THEN coalesce(c.cause, 'unknown') END AS cause,
            coalesce(s.short_name, c.subject) AS subject,
            CASE WHEN c.cost_ns > 0 THEN least(c.cost_ns / c.window_ns, j.excess_ns / j.run_ns) ELSE j.excess_ns / j.run_ns END AS cost_share
        FROM known AS k
        LEFT JOIN judged AS j ON j.run = k.run AND j.rank = k.rank
        LEFT JOIN causes AS c ON c.run = k.run AND c.rank = k.rank
        -- A kernel that no operator launched is called by its own name.
        LEFT JOIN short AS s ON s.name = c.subject AND c.subject = c.kernel
        LEFT JOIN communicating AS m ON m.run = k.run AND m.rank = k.rank
    ),
    explained AS (
        SELECT
            t.*,
            CASE
                WHEN t.is_late AND t.cause = 'slower compute' AND t.uniform_share >= 0.8
                    THEN lib.message('stragglers.slower_compute', {'rank': t.rank, 'cost_pct': 100 * t.cost_share, 'slowdown': t.slowdown, 'subject': t.subject})
                WHEN t.is_late AND t.cause = 'slower compute'
                    THEN lib.message('stragglers.slower_kernels', {'rank': t.rank, 'cost_pct': 100 * t.cost_share, 'slowdown': t.slowdown, 'subject': t.subject})
                WHEN t.is_late AND t.cause = 'throttling' THEN lib.message(
                    'stragglers.throttling',
                    {'rank': t.rank, 'cost_pct': 100 * t.cost_share, 'first_slowdown': t.first_third, 'last_slowdown': t.last_third, 'subject': t.subject}
                )
                WHEN t.is_late AND t.cause = 'more compute' THEN lib.message(
                    'stragglers.more_compute',
                    {'rank': t.rank, 'cost_pct': 100 * t.cost_share, 'cause_ns': t.cause_ns, 'window_ns': t.window_ns, 'subject': t.subject}
                )
                WHEN t.is_late AND t.cause = 'data loading' THEN lib.message(
                    'stragglers.data_loading',
                    {'rank': t.rank, 'cost_pct': 100 * t.cost_share, 'cause_ns': t.subject_ns, 'window_ns': t.window_ns, 'subject': t.subject}
                )
                WHEN t.is_late AND t.cause = 'host-bound' AND t.on_host THEN lib.message(
                    'stragglers.host_bound_without_device',
                    {'rank': t.rank, 'cost_pct': 100 * t.cost_share, 'cause_ns': t.cause_ns, 'window_ns': t.window_ns, 'subject': t.subject}
                )
                WHEN t.is_late AND t.cause = 'host-bound' THEN lib.message(
                    'stragglers.host_bound',
                    {'rank': t.rank, 'cost_pct': 100 * t.cost_share, 'cause_ns': t.cause_ns, 'window_ns': t.window_ns, 'subject': t.subject}
                )
                WHEN t.is_late AND t.cause = 'copies' THEN lib.message(
                    'stragglers.copies',
                    {'rank': t.rank, 'cost_pct': 100 * t.cost_share, 'cause_ns': t.cause_ns, 'window_ns': t.window_ns, 'subject': t.subject}
                )
                WHEN t.is_late THEN lib.message('stragglers.unknown', {'rank': t.rank, 'cost_pct': 100 * t.cost_share})
                WHEN t.is_trusted AND t.excess_ns >= t.run_ns * min_pct / 100 THEN lib.message(
                    'stragglers.not_significant',
                    {'last_arrival_count': t.last_arrival_count, 'collective_count': t.collective_count, 'excess_pct': 100 * t.excess_ns / t.run_ns}
                )
                WHEN t.is_trusted THEN NULL
                WHEN t.is_late IS NOT NULL THEN lib.message('stragglers.ends_disagree', NULL)
                WHEN t.is_matched THEN lib.message('stragglers.too_few_collectives', NULL)
                WHEN t.is_matched IS NULL THEN lib.message('stragglers.no_communication', NULL)
                ELSE lib.message('stragglers.not_matched', NULL)
            END AS message,
            CASE
                WHEN t.cause IN ('slower compute', 'throttling', 'more compute', 'copies') THEN 'kernels_across_ranks'
                WHEN t.cause = 'data loading' THEN 'step_accounting'
                WHEN t.cause = 'host-bound' THEN 'ops_by_name'
                WHEN t.cause = 'unknown' THEN 'collective_waits'
            END AS next_look
        FROM told AS t
    ),
    worded AS (
        SELECT e.*, lib.message_text(m.message, e.message.fields) AS sentence
        FROM explained AS e
        LEFT JOIN messages AS m ON m.code = e.message.code
    )
SELECT
    e.run,
    e.rank,
    CASE WHEN e.is_trusted THEN e.is_late END AS is_straggler,
    e.message.code AS message_code,
    CASE WHEN e.is_late THEN e.sentence END AS message,
    e.cause,
    e.subject,
    CASE WHEN e.is_late THEN e.subject_ns END AS subject_ns,
    e.cause_ns,
    e.kernel,
    e.slowdown,
    e.cost_ns,
    100 * (e.cost_ns / nullif(e.window_ns, 0)) AS cost_pct,
    e.excess_ns,
    100 * (e.excess_ns / nullif(e.run_ns, 0)) AS excess_pct,
    e.wait_caused_ns,
    100 * (e.wait_caused_ns / nullif(e.peer_count, 0) / nullif(e.run_ns, 0)) AS wait_caused_pct,
    e.wait_ns,
    e.last_arrival_count,
    100 * (e.last_arrival_count / nullif(e.collective_count, 0)) AS last_arrival_pct,
    e.collective_count,
    e.lateness_z,
    e.lateness_z_limit,
    100 * e.trusted_share AS trusted_pct,
    e.next_look AS next_analysis,
    CASE WHEN e.is_late THEN NULL ELSE e.sentence END AS reason
FROM worded AS e
ORDER BY e.run, e.rank
