-- Pipeline stages that do more work than the other stages, block by block, and the cost.
--
-- A stage is compared with the median of the other stages. Its cost is the additional wait of the other stages in
-- receives, sends and collectives.
CREATE OR REPLACE MACRO lib.slow_stages(
    -- Name of a relation with the columns of lib.judged_blocks.
    judged_items
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   stage         INTEGER         Stage of the pipeline, from 0.
--   is_slow       BOOLEAN         Whether the stage does significantly more work than the other stages, by at least 5 % of the time, and the other stages wait for it; NULL if fewer than two steps were compared.
--   step_count    BIGINT [count]  Number of compared steps.
--   window_ns     BIGINT [ns]     Total length of the compared steps.
--   late_ns       BIGINT [ns]     Time spent neither in exposed transfer nor in exposed wait, beyond the median of the other stages.
--   cost_ns       BIGINT [ns]     Wait of the other stages beyond the wait of this stage.
--   odds          DOUBLE [1]      Probability that any stage is as slow as this one by chance.
SELECT
    j.run,
    j.item_id::INTEGER AS stage,
    CASE WHEN j.block_count > 1 THEN j.level IN ('late', 'suspected') END AS is_slow,
    j.block_count AS step_count,
    round(j.block_ns * j.block_count)::BIGINT AS window_ns,
    round(j.mean_late_ns * j.block_count)::BIGINT AS late_ns,
    round(j.cost_ns * j.block_count)::BIGINT AS cost_ns,
    j.p AS odds
FROM query_table(judged_items) AS j
WHERE j.item_kind = 'stage'
