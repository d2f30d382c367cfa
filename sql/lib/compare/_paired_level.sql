-- Pair unpaired items of two sides that have a key in common.
CREATE OR REPLACE MACRO lib._paired_level(
    -- Name of a relation with the columns of lib._paired_level.
    keyed,
    -- Index of the key, from 1.
    key_no
) AS TABLE
-- Columns:
--   side        VARCHAR      Side of the comparison: control or test.
--   item        BIGINT [1]   Number of the item.
--   keys        VARCHAR[]    Keys for pairing, strictest first; NULL elements are not used.
--   pair_key    VARCHAR      Key in common with the other side; NULL: none so far.
--   pair_level  INTEGER [1]  Index of pair_key; NULL: none so far.
WITH
    _common AS (
        SELECT k.keys[key_no] AS common_key
        FROM query_table(keyed) AS k
        WHERE k.pair_level IS NULL AND k.keys[key_no] IS NOT NULL
        GROUP BY k.keys[key_no]
        HAVING count(DISTINCT k.side) = 2
    )
SELECT
    k.side AS side,
    k.item AS item,
    k.keys AS keys,
    coalesce(k.pair_key, c.common_key) AS pair_key,
    coalesce(k.pair_level, CASE WHEN c.common_key IS NOT NULL THEN key_no END)::INTEGER AS pair_level
FROM query_table(keyed) AS k
LEFT JOIN _common AS c ON k.pair_level IS NULL AND c.common_key = k.keys[key_no]
