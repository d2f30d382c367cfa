-- Pairs of a query and a key that an attention looks at.
--
-- The last query is opposite the last key. Of a causal attention the right window is 0: no key after the query.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib._attended_pairs(
    -- Queries.
    q_len,
    -- Keys.
    kv_len,
    -- Keys before the one opposite a query that it sees; NULL or below 0: all.
    left_window,
    -- Keys after that one; NULL or below 0: all.
    right_window
) AS
-- Returns: BIGINT [count]  Pairs of a head: all, less those beyond the right window, less those beyond the left one.
-- Sums of 1 + 2 + … over the rows of a triangle, less those of the corner that lies outside.
TRY_CAST(
    q_len::DOUBLE * kv_len::DOUBLE
    - CASE
        WHEN right_window >= 0 THEN
            greatest(q_len::DOUBLE - 1 - right_window::DOUBLE, 0) * (greatest(q_len::DOUBLE - 1 - right_window::DOUBLE, 0) + 1) / 2
            - greatest(q_len::DOUBLE - 1 - right_window::DOUBLE - kv_len::DOUBLE, 0)
            * (greatest(q_len::DOUBLE - 1 - right_window::DOUBLE - kv_len::DOUBLE, 0) + 1) / 2
        ELSE 0
    END
    - CASE
        WHEN left_window >= 0 THEN
            greatest(kv_len::DOUBLE - 1 - left_window::DOUBLE, 0) * (greatest(kv_len::DOUBLE - 1 - left_window::DOUBLE, 0) + 1) / 2
            - greatest(kv_len::DOUBLE - q_len::DOUBLE - 1 - left_window::DOUBLE, 0)
            * (greatest(kv_len::DOUBLE - q_len::DOUBLE - 1 - left_window::DOUBLE, 0) + 1) / 2
        ELSE 0
    END
    AS BIGINT
)
