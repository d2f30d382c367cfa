-- Which stages of a pipeline do more than the others, block after block, and what that costs.
--
-- The time of a stage is the median of its ranks, or the faster one of two, so a slow rank does not make a slow stage.
-- A stage is compared with the median of the other stages. Its cost is the additional wait of the other stages in
-- receives, sends and collectives.
--
-- Status: experimental
-- Since: 0.1
CREATE OR REPLACE MACRO lib.slow_stages(
    -- Name of a relation with the columns of lib.rank_blocks.
    blocks
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   stage         INTEGER         Stage of the pipeline, from 0.
--   is_slow       BOOLEAN         It does more than the others by 5 % of the time, not by chance, and they wait for it; NULL if fewer than two steps were compared.
--   step_count    BIGINT [count]  Steps that were compared.
--   window_ns     BIGINT [ns]     Length of these steps.
--   own_ns        BIGINT [ns]     Time in which the stage neither transfers nor waits, not overlapped.
--   late_ns       BIGINT [ns]     How much more that is than the median of the other stages.
--   cost_ns       BIGINT [ns]     How much longer the others wait than it.
--   odds          DOUBLE [1]      Probability that chance makes any stage look like this.
WITH
    _stage_blocks AS MATERIALIZED (
        SELECT
            b.run, 'stages' AS set_id, b.stage AS item_id, b.block, min(b.block_ns) AS block_ns,
            quantile_disc(b.own_ns, 0.5) AS own_ns, -quantile_disc(-b.wait_ns, 0.5) AS wait_ns
        FROM query_table(blocks) AS b
        WHERE b.stage IS NOT NULL
        GROUP BY b.run, b.stage, b.block
    )
SELECT
    j.run,
    j.item_id::INTEGER AS stage,
    CASE WHEN j.block_count > 1 THEN j.level IN ('late', 'suspected') END AS is_slow,
    j.block_count AS step_count,
    round(j.block_ns * j.block_count)::BIGINT AS window_ns,
    round(j.own_ns * j.block_count)::BIGINT AS own_ns,
    round(j.mean_late_ns * j.block_count)::BIGINT AS late_ns,
    round(j.cost_ns * j.block_count)::BIGINT AS cost_ns,
    j.p AS odds
FROM lib.judged_blocks('_stage_blocks', 5.0) AS j
