-- Verdict on whether each rank is a straggler, from its own time compared with its peers block by block.
--
-- A rank is reported only if it has more own work than its peers and they wait for it, both by at least min_pct of
-- lib.compared_items. It costs at most the time by which it arrives late in collectives: without it, its peers may wait
-- for a slow stage instead. A suspicion becomes a verdict if one kind of work (compute, copies or idle time) explains
-- 80 % of the lateness and shows in every block, or in all but one of five or more blocks. A suspicion is dropped if a
-- straggler in the run is ten times as late. If the end times of too many collectives disagree, waits are uncertain.
-- Only a rank that computes or copies for longer is then suspected, because this time is measured on the rank itself.
CREATE OR REPLACE MACRO lib.late_ranks(
    runs,
    -- Name of a relation with the columns of lib.rank_blocks.
    blocks,
    -- Name of a relation with the columns of lib.judged_blocks.
    judged_items,
    -- Name of a relation with the columns of lib.caused_waits.
    waits
) AS TABLE
-- Columns:
--   run              VARCHAR         Run name.
--   rank             INTEGER         Rank of the process.
--   verdict          VARCHAR         straggler, suspected, intermittent, none or unknown.
--   is_late          BOOLEAN         Whether the rank is a straggler; NULL if unknown.
--   stage            INTEGER         Pipeline stage, from 0; NULL without pipeline parallelism.
--   peer_count       BIGINT [count]  Number of ranks that the rank is compared with.
--   step_count       BIGINT [count]  Number of compared blocks, which are steps or windows of equal length.
--   late_step_count  BIGINT [count]  Blocks in which the rank is late.
--   late_blocks      BIGINT[]        Blocks in which the rank stands out.
--   window_ns        BIGINT [ns]     Total length of the compared blocks.
--   late_ns          BIGINT [ns]     Own work of the rank beyond that of its peers in the compared blocks.
--   cost_ns          BIGINT [ns]     Wait of the rank's peers beyond its own wait in the compared blocks, at most the time by which it arrives late.
--   most_cost_ns     BIGINT [ns]     Maximum of what the job would gain if the rank were as fast as its peers.
--   odds             DOUBLE [1]      Probability that any rank of the run is as late as this one by chance.
--   odds_limit       DOUBLE [1]      Maximum odds of a straggler in this many blocks; NULL with fewer than three blocks.
--   trusted_share    DOUBLE [1]      Share of the rank's collectives whose end times agree.
--   reason_code      VARCHAR         Reason for a suspected, intermittent or unknown verdict: a code of the table messages, few_blocks, few_data or some_blocks.
WITH
    _blocks AS MATERIALIZED (
        SELECT b.* FROM query_table(blocks) AS b
    ),
    _judged AS MATERIALIZED (
        SELECT j.* EXCLUDE (item_kind) FROM query_table(judged_items) AS j WHERE j.item_kind = 'rank'
    ),
    _seen AS (
        SELECT
            m.run, m.rank, m.is_p2p, m.end_times_match, bool_and(m.is_p2p) OVER (PARTITION BY m.run) AS only_p2p
        FROM matched_collectives AS m
        WHERE m.found_count > 1 AND NOT m.is_startup AND lib.is_requested(runs, m.run)
    ),
    _trust AS MATERIALIZED (
        SELECT
            s.run, s.rank,
            count_if(s.end_times_match) / count(*) AS trusted_share,
            sum(count_if(s.end_times_match)) OVER (PARTITION BY s.run) / sum(count(*)) OVER (PARTITION BY s.run) AS run_trusted_share
        FROM _seen AS s
        WHERE NOT s.is_p2p OR s.only_p2p
        GROUP BY s.run, s.rank
    ),
    -- The kind of work in which a rank exceeds the median of its set, for ranks that may be reported.
    _middles AS (
        SELECT b.run, b.set_id, b.block, median(b.compute_ns) AS compute_ns, median(b.memory_ns) AS memory_ns, median(b.idle_ns) AS idle_ns
        FROM _blocks AS b
        WHERE (b.run, b.set_id) IN (SELECT (j.run, j.set_id) FROM _judged AS j WHERE j.level IN ('late', 'suspected'))
        GROUP BY b.run, b.set_id, b.block
    ),
    _more AS (
        SELECT
            b.run, b.item_id,
            [b.compute_ns - m.compute_ns, b.memory_ns - m.memory_ns, b.idle_ns - m.idle_ns] AS parts
        FROM _blocks AS b
        JOIN _judged AS j ON j.run = b.run AND j.item_id = b.item_id
        JOIN _middles AS m ON m.run = b.run AND m.set_id = b.set_id AND m.block = b.block
        WHERE j.level IN ('late', 'suspected')
    ),
    _part_sums AS (
        SELECT
            m.run, m.item_id, count(*) AS n,
            [sum(m.parts[1]), sum(m.parts[2]), sum(m.parts[3])] AS totals,
            list(m.parts) AS parts
        FROM _more AS m
        GROUP BY m.run, m.item_id
    ),
    _chief AS (
        SELECT p.*, list_position(p.totals, list_max(p.totals)) AS chief FROM _part_sums AS p
    ),
    _steady AS (
        SELECT
            c.run, c.item_id,
            c.totals[1] + c.totals[2] AS measured_ns,
            list_sum(c.totals) AS more_ns,
            c.totals[c.chief] >= lib.judging().steady_share * list_sum(c.totals)
                -- The end of a capture cuts a block, so one of five or more blocks may show less.
                AND len(list_filter(c.parts, lambda part: part[c.chief] >= lib.judging().steady_block_share * c.totals[c.chief] / c.n)) >= c.n - (c.n >= lib.judging().cut_blocks)::INTEGER AS is_steady
        FROM _chief AS c
    ),
    -- An outlier block counts even if it is not significant, provided that the rank loads data or saves a checkpoint
    -- in the block.
    _outlier_blocks AS MATERIALIZED (
        SELECT b.run, b.item_id, b.span, b.block, b.ts, b.ts + b.block_ns AS end_ts, b.idle_ns - m.idle_ns AS more_ns,
            b.own_ns - m.own_ns AS late_ns
        FROM _judged AS j
        JOIN _blocks AS b ON b.run = j.run AND b.item_id = j.item_id AND list_contains(j.late_blocks, b.block)
        JOIN (
            SELECT o.run, o.set_id, o.block, median(o.idle_ns) AS idle_ns, median(o.own_ns) AS own_ns FROM _blocks AS o GROUP BY o.run, o.set_id, o.block
        ) AS m ON m.run = b.run AND m.set_id = b.set_id AND m.block = b.block
        WHERE j.level IN ('outlier', 'suspected') AND len(j.late_blocks) < lib.judging().most_blocks * j.block_count
    ),
    _purposeful AS (
        SELECT o.run, o.item_id
        FROM (
            SELECT b.run, b.item_id, b.block, any_value(b.more_ns) AS more_ns, any_value(b.late_ns) AS late_ns, sum(least(a.ts + a.dur, b.end_ts) - greatest(a.ts, b.ts)) AS ns
            FROM _outlier_blocks AS b
            JOIN annotations AS a ON a.run = b.run AND a.rank = b.item_id AND a.ts < b.end_ts AND a.ts + a.dur > b.ts
            WHERE NOT a.on_gpu AND lib.host_purpose(a.name) IS NOT NULL
            GROUP BY b.run, b.item_id, b.block
        ) AS o
        JOIN (SELECT b.run, b.item_id, count(*) AS n FROM _outlier_blocks AS b GROUP BY b.run, b.item_id) AS c ON c.run = o.run AND c.item_id = o.item_id
        WHERE o.more_ns >= lib.judging().purpose_share * o.late_ns AND o.ns >= lib.judging().purpose_share * o.more_ns
        GROUP BY o.run, o.item_id
        HAVING count(*) = any_value(c.n)
    ),
    _worst AS (
        SELECT j.run, max(j.late_ns) AS late_ns FROM _judged AS j WHERE j.level = 'late' GROUP BY j.run
    ),
    _known AS (
        SELECT k.run, k.rank FROM ranks AS k WHERE lib.is_requested(runs, k.run)
    ),
    -- Ranks with blocks, including blocks in which the work is unrecorded.
    _recorded AS (
        SELECT p.run, p.rank FROM step_parts AS p WHERE p.is_common AND lib.is_requested(runs, p.run) GROUP BY p.run, p.rank
    ),
    _stages AS (
        SELECT b.run, b.item_id AS rank, any_value(b.stage) AS stage FROM _blocks AS b GROUP BY b.run, b.item_id
    ),
    -- Without collectives whose end times agree, the arrivals are unknown.
    _costs AS (
        SELECT
            j.run, j.item_id AS rank,
            least(j.cost_ns * j.block_count, w.late_arrival_ns) AS total_ns,
            least(greatest(j.cost_ns, j.mean_late_ns) * j.block_count, w.after_first_ns) AS most_ns
        FROM _judged AS j
        LEFT JOIN query_table(waits) AS w ON w.run = j.run AND w.rank = j.item_id
    ),
    _verdicts AS (
        SELECT
            k.run, k.rank, j.* EXCLUDE (run, item_id), o.total_ns, o.most_ns, t.trusted_share, t.run_trusted_share < lib.judging().trusted_share AS is_mistrusted, g.stage,
            CASE
                WHEN t.run IS NULL OR j.run IS NULL OR j.level IS NULL OR j.block_count < 2 THEN 'unknown'
                WHEN t.run_trusted_share < lib.judging().trusted_share AND j.level = 'late' AND t.run_trusted_share >= lib.judging().least_trusted_share AND s.measured_ns >= lib.judging().measured_share * s.more_ns THEN 'suspected'
                WHEN t.run_trusted_share < lib.judging().trusted_share THEN 'unknown'
                WHEN o.total_ns < j.min_pct / 100 * j.block_ns * j.block_count THEN 'none'
                WHEN j.level = 'late' THEN 'straggler'
                WHEN j.level = 'suspected' AND lib.judging().dwarfed_ratio * j.late_ns < w.late_ns THEN 'none'
                WHEN
                    j.level = 'suspected' AND s.is_steady AND j.block_count > 1
                    -- Lateness in most of at least four blocks is stronger evidence than its sum.
                    AND j.p_late <= CASE WHEN j.block_count >= lib.judging().steady_blocks AND j.late_block_count > lib.judging().most_blocks * j.block_count THEN lib.judging().steady_odds_of_most ELSE lib.judging().steady_odds END
                    THEN 'straggler'
                WHEN u.run IS NOT NULL THEN 'intermittent'
                WHEN j.level = 'outlier' THEN 'none'
                ELSE j.level
            END AS verdict,
            CASE
                WHEN t.run IS NULL THEN NULL
                WHEN t.run_trusted_share < lib.judging().trusted_share THEN 'stragglers.ends_disagree'
                WHEN j.run IS NULL AND c.run IS NOT NULL THEN 'stragglers.unrecorded'
                WHEN j.run IS NULL THEN NULL
                WHEN j.block_count < 2 THEN 'stragglers.single_step'
                WHEN j.level IS NULL THEN 'stragglers.no_peer'
            END AS reason_code
        FROM _known AS k
        LEFT JOIN _trust AS t ON t.run = k.run AND t.rank = k.rank
        LEFT JOIN _judged AS j ON j.run = k.run AND j.item_id = k.rank
        LEFT JOIN _costs AS o ON o.run = k.run AND o.rank = k.rank
        LEFT JOIN _steady AS s ON s.run = k.run AND s.item_id = k.rank
        LEFT JOIN _purposeful AS u ON u.run = k.run AND u.item_id = k.rank
        LEFT JOIN _worst AS w ON w.run = k.run
        LEFT JOIN _recorded AS c ON c.run = k.run AND c.rank = k.rank
        LEFT JOIN _stages AS g ON g.run = k.run AND g.rank = k.rank
    )
SELECT
    v.run,
    v.rank,
    v.verdict,
    CASE WHEN v.verdict <> 'unknown' THEN v.verdict = 'straggler' END AS is_late,
    v.stage,
    v.peer_count,
    v.block_count AS step_count,
    v.late_block_count AS late_step_count,
    v.late_blocks,
    round(v.block_ns * v.block_count)::BIGINT AS window_ns,
    round(v.mean_late_ns * v.block_count)::BIGINT AS late_ns,
    round(v.total_ns)::BIGINT AS cost_ns,
    round(v.most_ns)::BIGINT AS most_cost_ns,
    v.p AS odds,
    v.late_limit AS odds_limit,
    v.trusted_share,
    CASE
        WHEN v.verdict = 'unknown' THEN v.reason_code
        WHEN v.verdict = 'suspected' AND v.is_mistrusted THEN 'stragglers.waits_uncertain'
        WHEN v.verdict = 'suspected' AND v.block_count < 3 THEN 'few_blocks'
        WHEN v.verdict = 'suspected' AND v.p > v.late_limit THEN 'few_data'
        WHEN v.verdict IN ('suspected', 'intermittent') THEN 'some_blocks'
    END AS reason_code
FROM _verdicts AS v
