-- Whether a value is requested: it is in the list, or there is no list.
--
-- NULL is in no list. Filters on run and rank with this macro still allow the engine to skip files.
CREATE OR REPLACE MACRO lib.is_requested(
    -- Requested values; NULL means every value.
    list,
    -- Value to test.
    x
) AS
-- Returns: BOOLEAN  Whether the value is requested; NULL for a NULL value if there is a list.
list IS NULL OR list_contains(list, x)
