-- How well collectives are matched across ranks: matched share, method and confidence for each group.
--
-- collective_waits, stragglers and step_accounting depend on this matching. A kernel is matched if the same collective
-- was found on another rank, and complete if it was found on all ranks whose traces contain the group. A match is
-- trusted if the end times also agree and the collective is not the first of a rank in the capture. Waits are judged
-- from trusted matches. Matches by order have a margin: the logarithm of how much worse the next-best alignment fits.
-- If the margin is below 0.5, the match relies on the order alone. A run with a single rank has nothing to match.
--
-- Title: How collectives are matched across ranks
-- Shown: channel, rank_count, kernel_count, matched_count, matched_pct, trusted_pct, match_method, message
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; sequences are matched as a whole
-- Reference: none
-- Needs: GPU activity of two ranks that communicate
CREATE OR REPLACE MACRO collective_match_v1(
    runs VARCHAR[] := NULL,
    -- Ranks whose kernels to count; NULL means every rank.
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run                   VARCHAR         Run name.
--   channel               VARCHAR         What identifies the group: its ranks, the two ranks of a send and receive, the group name or the stream.
--   pg_name               VARCHAR         Process group name; one of the names if they differ between ranks.
--   rank_count            BIGINT [count]  Number of ranks whose traces contain the group.
--   kernel_count          BIGINT [count]  Number of communication kernels; for gloo, number of calls.
--   matched_count         BIGINT [count]  Number of kernels also found on another rank.
--   matched_pct           DOUBLE [%]      matched_count as a share of kernel_count.
--   complete_pct          DOUBLE [%]      Share of kernel_count found on all ranks of the group.
--   judged_count          BIGINT [count]  Number of kernels found on all ranks, excluding the first of a capture; their waits can be judged.
--   trusted_pct           DOUBLE [%]      Share of judged_count whose end times agree; NULL if judged_count is 0.
--   startup_count         BIGINT [count]  Number of kernels that belong to the first collective of a rank in the capture.
--   match_method          VARCHAR         Methods used, separated by commas: seq (sequence number), ordinal, time, stream; none if nothing is matched.
--   match_margin          DOUBLE [1]      Smallest margin over all ranks; NULL if there was no alternative alignment.
--   median_end_spread_ns  BIGINT [ns]     Median time from the first to the last end of a collective.
--   message_code          VARCHAR         Code of the message in the table messages.
--   message               VARCHAR         Summary of the matching in one sentence.
WITH
    groups AS (
        SELECT
            m.run, m.channel_id,
            any_value(m.channel) AS channel, max(m.pg_name) AS pg_name, max(m.rank_count) AS rank_count,
            count(*) AS n,
            count_if(m.found_count > 1) AS matched,
            count_if(m.is_complete) AS complete,
            count_if(m.is_complete AND NOT m.is_startup) AS judged,
            count_if(m.is_complete AND NOT m.is_startup AND m.end_times_match) AS trusted,
            count_if(m.is_startup) AS startup,
            coalesce(string_agg(DISTINCT m.match_method, ', ' ORDER BY m.match_method) FILTER (m.match_method <> 'none'), 'none') AS method,
            min(m.match_margin) AS margin,
            (median(m.end_spread_ns) FILTER (m.is_complete AND NOT m.is_startup))::BIGINT AS end_spread
        FROM matched_collectives AS m
        WHERE lib.is_requested(runs, m.run) AND lib.is_requested(ranks, m.rank)
        GROUP BY m.run, m.channel_id
    ),
    described AS (
        SELECT
            g.*,
            CASE
                WHEN g.matched = 0 THEN lib.message('collective_match.none', {'kernel_count': g.n, 'channel': g.channel})
                WHEN g.judged = 0
                    THEN lib.message('collective_match.not_judged', {'matched_count': g.matched, 'kernel_count': g.n, 'channel': g.channel, 'method': g.method})
                ELSE lib.message(
                    'collective_match.judged',
                    {'matched_count': g.matched, 'kernel_count': g.n, 'channel': g.channel, 'method': g.method, 'agreeing_pct': 100 * g.trusted / g.judged}
                )
            END AS message
        FROM groups AS g
    )
SELECT
    g.run,
    g.channel,
    g.pg_name,
    g.rank_count,
    g.n AS kernel_count,
    g.matched::BIGINT AS matched_count,
    100 * g.matched / g.n AS matched_pct,
    100 * g.complete / g.n AS complete_pct,
    g.judged::BIGINT AS judged_count,
    100 * g.trusted / nullif(g.judged, 0) AS trusted_pct,
    g.startup::BIGINT AS startup_count,
    g.method AS match_method,
    g.margin AS match_margin,
    g.end_spread AS median_end_spread_ns,
    g.message.code AS message_code,
    lib.message_text(t.message, g.message.fields) AS message
FROM described AS g
LEFT JOIN messages AS t ON t.code = g.message.code
ORDER BY g.run, g.n DESC, g.channel_id
