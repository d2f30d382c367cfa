-- Items that consistently do more work than their peers across blocks, beyond what chance explains.
--
-- An item is a rank, a stage or a link; each kind is judged separately, all in one pass. The peers of an item are the
-- other items of its set. In each block, its lateness is its own time minus the median time of its peers, and its cost
-- is the median wait of its peers minus its own wait. The tests use blocks as replicates:
--
--   p_blocks  Student's t-test of the item's median lateness against the variation from block to block, taken from its
--             peers or, if larger, from the item's own blocks below its median. Lasting deviations (autocorrelation) leave fewer
--             independent blocks.
--   p_items   The same test against the spread of its peers' medians.
--   p_group   For the items of a slow group, such as the ranks of one host: the same test of the gap between the group and the other
--             items against the spread within both. A group is what is above the widest gap between median own times, from two
--             items to half of the set. It replaces a larger p_items, because such items inflate each other's spread.
--   p_often   Binomial test of the number of blocks in which the item is the outlier; within a run of consecutive blocks, only
--             every second block after the first counts.
--   p_steps   Binomial test of the number of blocks in which the item stands out, given how often its peers do. The more equal its
--             lateness in these blocks, the lower the probability.
--
-- With few blocks or items, their spread says little about the spread of the noise. Both t-tests are therefore repeated
-- with a spread that combines the measured one with the usual one, 5 % of a block with four degrees of freedom (moderated
-- t-test, Smyth 2004), and the smaller probability counts: an effect far outside any usual noise is certain in a few blocks.
--
-- An item that is late only in the last blocks became slow: for such an item, the threshold for a suspicion (0.05)
-- suffices.
--
-- Each probability is multiplied by the number of tested items of the same kind in the run. With fewer than eight
-- independent blocks, p_items must be small, too; with eight or more, it is ignored. The query uses only windows and
-- group-bys, so its run time grows as n log n with the number of blocks.
CREATE OR REPLACE MACRO lib.judged_blocks(
    -- Name of a relation with the columns of lib.compared_items.
    block_items
) AS TABLE
-- Columns:
--   item_kind         VARCHAR         rank, stage or link.
--   run               VARCHAR         Run name.
--   set_id            VARCHAR         Set of peers.
--   item_id           BIGINT          Number of the rank, stage or link.
--   peer_count        BIGINT [count]  Other items of the set.
--   block_count       BIGINT [count]  Blocks of the item.
--   late_block_count  BIGINT [count]  Blocks in which the item is late by more than min_pct and three times the noise, and its peers wait for it.
--   late_blocks       BIGINT[]        Blocks in which the item stands out by eight times the noise.
--   min_pct           DOUBLE [%]      Minimum lateness and cost of a level, as a share of a block.
--   block_ns          DOUBLE [ns]     Mean length of a block.
--   late_ns           DOUBLE [ns]     Median lateness in a block.
--   mean_late_ns      DOUBLE [ns]     Mean lateness in a block.
--   cost_ns           DOUBLE [ns]     Mean cost in a block.
--   own_ns            DOUBLE [ns]     Mean own time in a block.
--   peer_own_ns       DOUBLE [ns]     Mean over the blocks of the peers' median own time.
--   p                 DOUBLE [1]      Probability that any item of the run is as late as this one by chance.
--   p_late            DOUBLE [1]      The same probability, based on p_blocks and, if blocks are few, p_items.
--   late_limit        DOUBLE [1]      Maximum p_late of the level late, lower with few independent blocks; NULL with fewer than three blocks.
--   level             VARCHAR         late, intermittent, suspected, outlier (late in so few blocks that chance explains it) or none; NULL without peers.
WITH
    _lengths AS (
        SELECT b.item_kind, b.run, avg(b.block_ns) AS block_ns, any_value(b.min_pct) AS min_pct
        FROM (SELECT DISTINCT i.item_kind, i.run, i.block, i.block_ns, i.min_pct FROM query_table(block_items) AS i) AS b
        GROUP BY b.item_kind, b.run
    ),
    -- Times are scaled as if all blocks were equally long. All sums are sums of integers, so they do not depend on the
    -- number of threads.
    _scaled AS MATERIALIZED (
        SELECT
            i.item_kind, i.run, i.set_id, i.item_id::BIGINT AS item_id, i.block, i.block_ns AS length, l.block_ns, l.min_pct,
            round(i.own_ns::DOUBLE * l.block_ns / i.block_ns)::BIGINT AS own, round(i.wait_ns::DOUBLE * l.block_ns / i.block_ns)::BIGINT AS wait
        FROM query_table(block_items) AS i
        JOIN _lengths AS l ON l.item_kind = i.item_kind AND l.run = i.run
        WHERE i.block_ns > 0
    ),
    _sorted AS MATERIALIZED (
        SELECT
            s.item_kind, s.run, s.set_id, s.block,
            list(s.own ORDER BY s.own, s.item_id) AS owns,
            list(s.wait ORDER BY s.wait, s.item_id) AS waits
        FROM _scaled AS s
        GROUP BY s.item_kind, s.run, s.set_id, s.block
    ),
    _placed AS (
        SELECT
            s.*,
            row_number() OVER (PARTITION BY s.item_kind, s.run, s.set_id, s.block ORDER BY s.own, s.item_id) AS own_position,
            row_number() OVER (PARTITION BY s.item_kind, s.run, s.set_id, s.block ORDER BY s.wait, s.item_id) AS wait_position
        FROM _scaled AS s
    ),
    _compared AS MATERIALIZED (
        SELECT
            p.item_kind, p.run, p.set_id, p.item_id, p.block, p.length, p.block_ns, p.min_pct, p.own,
            round(lib._median_of_others(o.owns, p.own_position))::BIGINT AS peer_own,
            round(p.own - list_avg(o.owns))::BIGINT AS apart,
            round(p.own - lib._median_of_others(o.owns, p.own_position))::BIGINT AS late,
            round(lib._median_of_others(o.waits, p.wait_position) - p.wait)::BIGINT AS cost
        FROM _placed AS p
        JOIN _sorted AS o ON o.item_kind = p.item_kind AND o.run = p.run AND o.set_id = p.set_id AND o.block = p.block
    ),
    _items AS MATERIALIZED (
        SELECT
            c.item_kind, c.run, c.set_id, c.item_id, any_value(c.block_ns) AS block_ns, any_value(c.min_pct) AS min_pct, count(c.late) AS n, avg(c.late) AS mean, median(c.late) AS middle,
            -- The cost is not scaled, so a long block has more weight.
            avg(round(c.late::HUGEINT * c.length / c.block_ns)::BIGINT) AS true_mean, avg(round(c.cost::HUGEINT * c.length / c.block_ns)::BIGINT) AS cost,
            avg(c.own) AS own, avg(c.peer_own) AS peer_own, round(median(c.apart))::BIGINT AS apart,
            count(*) OVER (PARTITION BY c.item_kind, c.run, c.set_id) AS set_size
        FROM _compared AS c
        GROUP BY c.item_kind, c.run, c.set_id, c.item_id
    ),
    _residuals AS MATERIALIZED (
        SELECT c.item_kind, c.run, c.set_id, c.item_id, c.block, c.late, c.cost, round(c.late - i.mean)::BIGINT AS residual, round(c.late - i.middle)::BIGINT AS above, i.n
        FROM _compared AS c
        JOIN _items AS i ON i.item_kind = c.item_kind AND i.run = c.run AND i.set_id = c.set_id AND i.item_id = c.item_id
        WHERE c.late IS NOT NULL
    ),
    _run_noise AS (
        SELECT r.item_kind, r.run, 1.4826 * median(abs(r.residual)) AS noise, count(DISTINCT (r.set_id, r.item_id)) AS tests
        FROM _residuals AS r
        GROUP BY r.item_kind, r.run
    ),
    _set_noise AS (
        SELECT r.item_kind, r.run, r.set_id, 1.4826 * median(abs(r.residual)) AS noise FROM _residuals AS r GROUP BY r.item_kind, r.run, r.set_id
    ),
    _flagged AS MATERIALIZED (
        SELECT
            r.*,
            r.late > greatest(lib.judging().outlier_noises * n.noise, lib.judging().outlier_share * l.block_ns) AND r.cost > 0 AS stands_out,
            r.late > greatest(lib.judging().late_noises * n.noise, l.min_pct / 100 * l.block_ns) AND r.cost > 0 AS is_late,
            -- Outliers are clipped; otherwise a single outlier would mask a lasting delay.
            round(greatest(-lib.judging().clipped_noises * s.noise, least(lib.judging().clipped_noises * s.noise, r.above)))::BIGINT AS clipped
        FROM _residuals AS r
        JOIN _run_noise AS n ON n.item_kind = r.item_kind AND n.run = r.run
        JOIN _set_noise AS s ON s.item_kind = r.item_kind AND s.run = r.run AND s.set_id = r.set_id
        JOIN _lengths AS l ON l.item_kind = r.item_kind AND l.run = r.run
    ),
    _sequences AS (
        SELECT
            f.*,
            f.stands_out AND NOT coalesce(lag(f.stands_out) OVER in_time, false) AS starts_episode,
            row_number() OVER in_time AS position,
            round(f.clipped - avg(f.clipped) OVER (PARTITION BY f.item_kind, f.run, f.set_id, f.item_id))::BIGINT AS deviation
        FROM _flagged AS f
        WINDOW in_time AS (PARTITION BY f.item_kind, f.run, f.set_id, f.item_id ORDER BY f.block)
    ),
    _successive AS (
        SELECT s.*, lag(s.deviation) OVER (PARTITION BY s.item_kind, s.run, s.set_id, s.item_id ORDER BY s.block) AS deviation_before
        FROM _sequences AS s
    ),
    _sums AS MATERIALIZED (
        SELECT
            s.item_kind, s.run, s.set_id, s.item_id,
            count_if(s.starts_episode)::BIGINT AS episodes, count_if(s.stands_out)::BIGINT AS standing_out, count_if(s.is_late)::BIGINT AS late_blocks,
            list(s.block ORDER BY s.block) FILTER (s.stands_out) AS blocks,
            sum(s.late) FILTER (s.stands_out) AS standing_late, sum(greatest(s.late, 0)) AS any_late,
            min(s.late) FILTER (s.stands_out) AS least_standing, max(s.late) FILTER (s.stands_out) AS most_standing,
            min(s.position) FILTER (s.is_late) AS first_late, min(s.late) FILTER (s.is_late) AS least_late, max(s.late) FILTER (NOT s.is_late) AS most_usual,
            sum(s.residual::HUGEINT * s.residual) AS square,
            sum(least(0, s.above)::HUGEINT * least(0, s.above)) AS square_below,
            sum(s.deviation::HUGEINT * s.deviation) AS deviation_square,
            coalesce(sum(s.deviation::HUGEINT * s.deviation_before), 0) AS deviation_product
        FROM _successive AS s
        GROUP BY s.item_kind, s.run, s.set_id, s.item_id
    ),
    _totals AS (
        SELECT
            i.*, s.* EXCLUDE (item_kind, run, set_id, item_id), n.tests, n.noise,
            sum(s.square) OVER in_set AS set_square, sum(s.deviation_square) OVER in_set AS set_deviation, sum(s.deviation_product) OVER in_set AS set_product,
            sum(s.square) OVER in_run AS run_square, sum(s.deviation_square) OVER in_run AS run_deviation, sum(s.deviation_product) OVER in_run AS run_product,
            -- An outlier at a block boundary affects two consecutive blocks, so within an episode only every second
            -- block after the first counts.
            s.episodes + (s.standing_out - s.episodes) // 2 AS times, sum(s.episodes + (s.standing_out - s.episodes) // 2) OVER in_set AS set_times,
            (sum(s.standing_out) OVER in_set - s.standing_out + 1) / (sum(i.n) OVER in_set - i.n + 2) AS peer_rate,
            -- Compare with the other items of the set, or of the run if the set is too small to show how much blocks
            -- vary.
            (i.set_size - 2) * (i.n - 1) >= lib.judging().pooled_freedom OR i.set_size = n.tests AS uses_set
        FROM _items AS i
        JOIN _sums AS s ON s.item_kind = i.item_kind AND s.run = i.run AND s.set_id = i.set_id AND s.item_id = i.item_id
        JOIN _run_noise AS n ON n.item_kind = i.item_kind AND n.run = i.run
        WINDOW in_set AS (PARTITION BY i.item_kind, i.run, i.set_id), in_run AS (PARTITION BY i.item_kind, i.run)
    ),
    _pools AS MATERIALIZED (
        SELECT
            t.*,
            CASE WHEN t.uses_set THEN t.set_size ELSE t.tests END - 1 AS pool_size,
            CASE WHEN t.uses_set THEN t.set_square ELSE t.run_square END - t.square AS pool_square,
            greatest(CASE WHEN t.uses_set THEN t.set_deviation ELSE t.run_deviation END - t.deviation_square, 1) AS pool_deviation,
            CASE WHEN t.uses_set THEN t.set_product ELSE t.run_product END - t.deviation_product AS pool_product
        FROM _totals AS t
    ),
    -- Correlation of successive blocks of the other items, corrected for its bias in short series, minus the
    -- correlation expected by chance.
    _lasting AS (
        SELECT
            p.*,
            CASE
                WHEN p.n < lib.judging().correlated_blocks THEN 0
                ELSE least(
                    lib.judging().most_correlation,
                    greatest(
                        0,
                        CASE WHEN p.n > lib.judging().short_series THEN (p.n * p.pool_product / p.pool_deviation + 1) / (p.n - 3) ELSE p.pool_product / p.pool_deviation + 1 / p.n END
                        - 1 / sqrt(p.pool_size * p.n)
                    )
                )
            END AS correlation
        FROM _pools AS p
    ),
    _scales AS MATERIALIZED (
        SELECT
            l.*,
            (1 + l.correlation) / (1 - l.correlation) AS factor,
            greatest(1, greatest(1, l.pool_size - 1) * (l.n - 1)) AS freedom,
            sqrt(greatest(0, l.pool_square) / greatest(1, greatest(1, l.pool_size - 1) * (l.n - 1))) AS within,
            sqrt(l.square_below / nullif(l.n - 1, 0)) AS below,
            round(l.middle - median(l.middle) OVER (PARTITION BY l.item_kind, l.run, l.set_id))::BIGINT AS from_middle
        FROM _lasting AS l
    ),
    _sorted_middles AS (
        SELECT
            s.item_kind, s.run, s.set_id, list(s.from_middle ORDER BY s.from_middle, s.item_id) AS middles,
            list(abs(s.from_middle) ORDER BY abs(s.from_middle), s.item_id) AS distances,
            sum(s.from_middle)::BIGINT AS total, sum(s.from_middle::HUGEINT * s.from_middle)::DOUBLE AS square
        FROM _scales AS s
        GROUP BY s.item_kind, s.run, s.set_id
    ),
    _positions AS (
        SELECT
            s.*,
            row_number() OVER (PARTITION BY s.item_kind, s.run, s.set_id ORDER BY s.from_middle, s.item_id) AS position,
            row_number() OVER (PARTITION BY s.item_kind, s.run, s.set_id ORDER BY abs(s.from_middle), s.item_id) AS distance_position
        FROM _scales AS s
    ),
    _centered AS (
        SELECT
            s.*, m.total - s.from_middle AS others_total, m.square - s.from_middle::DOUBLE * s.from_middle AS others_square,
            lib._median_of_others(m.middles, s.position) AS centre,
            1.4826 * (1 + 2 / (s.set_size - 1)) * lib._median_of_others(m.distances, s.distance_position) AS robust
        FROM _positions AS s
        JOIN _sorted_middles AS m ON m.item_kind = s.item_kind AND m.run = s.run AND m.set_id = s.set_id
    ),
    _ordered AS (
        SELECT
            i.item_kind, i.run, i.set_id, i.set_size, i.apart, lag(i.apart) OVER in_order AS beneath,
            row_number() OVER in_order - 1 AS lower_count, sum(i.apart) OVER in_order - i.apart AS lower_total,
            sum(i.apart) OVER in_set AS total, sum(i.apart::HUGEINT * i.apart) OVER in_set AS square
        FROM _items AS i
        WINDOW
            in_set AS (PARTITION BY i.item_kind, i.run, i.set_id),
            in_order AS (PARTITION BY i.item_kind, i.run, i.set_id ORDER BY i.apart, i.item_id ROWS UNBOUNDED PRECEDING)
    ),
    _parted AS (
        SELECT
            o.* EXCLUDE (total), o.set_size - o.lower_count AS upper_count, o.total - o.lower_total AS upper_total, o.apart - o.beneath AS gap
        FROM _ordered AS o
    ),
    _groups AS MATERIALIZED (
        SELECT
            o.item_kind, o.run, o.set_id, o.apart AS least, o.gap,
            sqrt(greatest(0, o.square - o.lower_total::DOUBLE ** 2 / o.lower_count - o.upper_total::DOUBLE ** 2 / o.upper_count) / (o.set_size - 2)) AS spread
        FROM _parted AS o
        WHERE o.upper_count >= 2 AND o.upper_count <= lib.judging().group_share * o.set_size
        QUALIFY row_number() OVER (PARTITION BY o.item_kind, o.run, o.set_id ORDER BY o.gap DESC, o.upper_count) = 1
    ),
    _spreads AS (
        SELECT
            c.*,
            sqrt(
                greatest(0, c.others_square - 2 * c.centre * c.others_total + (c.set_size - 1) * c.centre * c.centre)
                / nullif(c.set_size - 2, 0)
            ) AS spread
        FROM _centered AS c
    ),
    _statistics AS MATERIALIZED (
        SELECT
            s.*,
            greatest(s.within, s.below) AS block_spread,
            CASE WHEN s.n > 2 THEN 1.25 ELSE 1 END AS median_factor,
            greatest(1, CASE WHEN s.below > lib.judging().own_spread_ratio * s.within THEN s.n - 1 ELSE s.freedom END / s.factor) AS block_freedom,
            (s.from_middle - s.centre) / sqrt(1 + 1 / (s.set_size - 1)) AS item_distance,
            CASE WHEN s.set_size > lib.judging().few_items THEN least(s.spread, s.robust) ELSE s.spread END AS item_spread,
            s.set_size - 2 AS item_freedom,
            CASE WHEN s.apart >= g.least THEN g.gap ELSE 0 END AS gap, coalesce(g.spread, 0) AS group_spread
        FROM _spreads AS s
        LEFT JOIN _groups AS g ON g.item_kind = s.item_kind AND g.run = s.run AND g.set_id = s.set_id
    ),
    -- A macro expands its arguments at every use, so each is computed once here.
    _distances AS (
        SELECT
            s.*,
            s.middle / greatest(1, s.block_spread * s.median_factor * sqrt(s.factor / s.n)) AS block_errors,
            s.item_distance / greatest(1, s.item_spread) AS item_errors,
            -- Correlation leaves at least two independent blocks: few blocks do not show more of it.
            lib._moderated(
                s.middle / (s.median_factor * sqrt(least(s.factor, s.n / 2) / s.n)), s.block_spread, s.block_freedom, s.block_ns
            ) AS usual_block_errors,
            lib._moderated(s.item_distance, s.item_spread, s.item_freedom, s.block_ns) AS usual_item_errors,
            lib._moderated(s.gap, s.group_spread, s.item_freedom, s.block_ns) AS group_errors,
            lib.judging().usual_freedom + s.block_freedom AS usual_block_freedom,
            lib.judging().usual_freedom + s.item_freedom AS usual_item_freedom
        FROM _statistics AS s
    ),
    _tails AS (
        SELECT
            d.*,
            lib.student_tail(d.block_errors, d.block_freedom) AS block_tail,
            lib.student_tail(d.usual_block_errors, d.usual_block_freedom) AS usual_block_tail,
            lib.student_tail(d.item_errors, d.item_freedom) AS item_tail,
            lib.student_tail(d.usual_item_errors, d.usual_item_freedom) AS usual_item_tail,
            lib.student_tail(d.group_errors, d.usual_item_freedom) AS group_tail
        FROM _distances AS d
    ),
    _tested AS (
        SELECT
            s.*,
            CASE WHEN s.n < 2 THEN 1 ELSE least(1, s.tests * least(s.block_tail, s.usual_block_tail)) END AS p_blocks,
            CASE WHEN s.set_size < 3 THEN 1 ELSE least(1, s.tests * least(s.item_tail, s.usual_item_tail, s.group_tail)) END AS p_items,
            CASE
                WHEN s.episodes >= lib.judging().least_outliers AND s.set_size > 1 THEN least(1, s.tests * lib._binomial_tail(s.times, s.set_times, 1 / s.set_size)) ELSE 1
            END AS p_often,
            -- Probability of this many outlier blocks (blocks after the first of an episode count half), times the
            -- probability that their lateness is this similar if accidental delays are exponentially distributed.
            CASE
                WHEN s.standing_out >= lib.judging().least_outliers AND s.set_size > 2 THEN
                    greatest(
                        1e-300,
                        lib._binomial_tail(s.episodes + (s.standing_out - s.episodes + 1) // 2, s.n, s.peer_rate)
                        * (s.most_standing - s.least_standing) / (s.most_standing + s.least_standing)
                    )
                ELSE 1
            END AS chance_steps,
            s.n / s.factor AS independent
        FROM _tails AS s
    ),
    _compared_twice AS (
        SELECT
            t.*,
            -- The product of two probabilities is small more often than either of them (Fisher).
            least(1, t.tests * t.chance_steps * (1 - ln(t.chance_steps))) AS p_steps,
            CASE WHEN t.independent >= lib.judging().many_blocks THEN 0 WHEN t.independent < lib.judging().few_blocks THEN t.p_items ELSE t.p_items * lib.judging().items_weight END AS p_differ
        FROM _tested AS t
    ),
    _combined AS MATERIALIZED (
        SELECT
            t.*,
            CASE
                WHEN t.n < 2 THEN greatest(t.p_items, lib.judging().steady_odds)
                WHEN t.set_size < 3 THEN t.p_blocks
                WHEN t.standing_out > lib.judging().most_blocks * t.n THEN least(greatest(t.p_blocks, t.p_differ), greatest(t.p_steps, t.p_differ))
                ELSE greatest(t.p_blocks, t.p_differ)
            END AS p_late
        FROM _compared_twice AS t
    ),
    _limited AS (
        SELECT
            c.*,
            CASE
                WHEN c.n < lib.judging().least_late_blocks THEN NULL
                WHEN c.independent < lib.judging().few_blocks THEN lib.judging().late_odds_of_few
                WHEN c.independent < lib.judging().some_blocks THEN lib.judging().late_odds_of_some
                ELSE lib.judging().late_odds
            END::DOUBLE AS late_limit
        FROM _combined AS c
    ),
    _levels AS (
        SELECT
            c.*,
            CASE
                WHEN c.set_size < 2 THEN NULL
                WHEN least(c.true_mean, c.cost) < c.min_pct / 100 * c.block_ns THEN 'none'
                -- A few blocks contain most of the item's lateness.
                WHEN
                    c.standing_out < lib.judging().most_blocks * c.n AND c.standing_late >= lib.judging().outlier_late_share * c.any_late
                    AND (c.p_often <= lib.judging().intermittent_odds OR c.p_steps <= lib.judging().intermittent_steps_odds)
                    AND c.first_late < c.n - c.late_blocks + 1
                    THEN 'intermittent'
                WHEN c.middle >= c.min_pct / 100 * c.block_ns AND c.p_late <= c.late_limit THEN 'late'
                -- The late blocks are the last blocks, and their lateness is far from that of the others: the item
                -- became slow, which inflates its usual deviation.
                WHEN
                    c.p_late <= lib.judging().suspected_odds AND c.late_blocks >= lib.judging().least_slowed_blocks AND lib.judging().slowed_part * c.late_blocks >= c.n
                    AND c.first_late = c.n - c.late_blocks + 1 AND c.least_late - c.most_usual > lib.judging().slowed_noises * c.noise
                    THEN 'late'
                WHEN c.standing_out <= lib.judging().most_blocks * c.n AND (c.p_often <= lib.judging().intermittent_odds OR c.p_steps <= lib.judging().intermittent_steps_odds) THEN 'intermittent'
                WHEN least(c.p_late, c.p_often, c.p_steps) <= lib.judging().suspected_odds THEN 'suspected'
                WHEN c.independent < lib.judging().many_blocks AND c.standing_out > lib.judging().most_blocks * c.n AND c.p_items <= lib.judging().late_odds THEN 'suspected among items'
                WHEN c.standing_out < lib.judging().most_blocks * c.n AND c.standing_late >= lib.judging().outlier_late_share * c.any_late THEN 'outlier'
                ELSE 'none'
            END AS level
        FROM _limited AS c
    )
SELECT
    v.item_kind,
    v.run,
    v.set_id,
    v.item_id,
    v.set_size - 1 AS peer_count,
    v.n AS block_count,
    v.late_blocks AS late_block_count,
    v.blocks AS late_blocks,
    v.min_pct::DOUBLE AS min_pct,
    v.block_ns,
    v.middle AS late_ns,
    v.true_mean AS mean_late_ns,
    v.cost AS cost_ns,
    v.own AS own_ns,
    v.peer_own AS peer_own_ns,
    CASE v.level
        WHEN 'late' THEN v.p_late
        WHEN 'intermittent' THEN least(v.p_often, v.p_steps)
        -- So few independent blocks do not support a lower probability.
        WHEN 'suspected among items' THEN greatest(v.p_items, lib.judging().steady_odds)
        ELSE least(v.p_late, v.p_often, v.p_steps)
    END AS p,
    v.p_late,
    v.late_limit,
    CASE v.level WHEN 'suspected among items' THEN 'suspected' ELSE v.level END AS level
FROM _levels AS v
