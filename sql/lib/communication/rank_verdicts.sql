-- Verdict of stragglers on each rank, for analyses that name ranks by another measure.
CREATE OR REPLACE MACRO lib.rank_verdicts(
    runs
) AS TABLE
-- Columns:
--   run      VARCHAR  Run name.
--   rank     INTEGER  Rank of the process.
--   verdict  VARCHAR  straggler, suspected, intermittent, none or unknown.
--   is_late  BOOLEAN  Whether the rank is a straggler; NULL if unknown.
WITH
    _pipeline AS (
        FROM lib.pipeline_ranks(runs)
    ),
    _blocks AS MATERIALIZED (
        SELECT b.* FROM lib.rank_blocks(runs, '_pipeline') AS b
    ),
    _items AS MATERIALIZED (
        SELECT
            'rank' AS item_kind, b.run, b.set_id, b.item_id, b.block, b.block_ns, b.own_ns, b.wait_ns, lib.judging().least_pct::DOUBLE AS min_pct
        FROM _blocks AS b
    ),
    _judged AS MATERIALIZED (
        SELECT j.* FROM lib.judged_blocks('_items') AS j
    ),
    _waits AS MATERIALIZED (
        SELECT w.* FROM lib.caused_waits(runs) AS w
    )
SELECT r.run, r.rank, r.verdict, r.is_late
FROM lib.late_ranks(runs, '_blocks', '_judged', '_waits') AS r
