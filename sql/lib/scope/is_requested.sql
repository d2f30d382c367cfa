-- Whether a value is asked for: it is in the list, or there is no list.
--
-- An unknown value is in no list. Filters on run and rank by this still choose the files to read.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.is_requested(
    -- Values asked for; NULL means every value.
    list,
    -- The value.
    x
) AS
-- Returns: BOOLEAN  Whether it is asked for; NULL for an unknown value where there is a list.
list IS NULL OR list_contains(list, x)
