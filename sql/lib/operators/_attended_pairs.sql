-- Number of query-key pairs that attention computes.
--
-- The last query is aligned with the last key. For causal attention, right_window is 0: no key after the query.
CREATE OR REPLACE MACRO lib._attended_pairs(
    -- Number of queries.
    q_len,
    -- Number of keys.
    kv_len,
    -- Number of visible keys before the key aligned with a query; NULL or negative: all.
    left_window,
    -- Number of visible keys after the key aligned with a query; NULL or negative: all.
    right_window
) AS
-- Returns: BIGINT [count]  Pairs per head: all pairs, minus the pairs beyond the right window, minus the pairs beyond the left window. The pairs beyond a window are a triangle sum 1 + 2 + …, minus the corner that lies outside.
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
