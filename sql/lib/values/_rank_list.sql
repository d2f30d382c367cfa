-- Ranks as a string, with ranges for consecutive ranks: 0-3, 7.
CREATE OR REPLACE MACRO lib._rank_list(
    -- Ranks, each once and ascending.
    list
) AS
-- Returns: VARCHAR  Ranks as a string; NULL for an empty list.
list_aggregate(
    list_transform(
        list_filter(list, lambda first, place: place = 1 OR list[place - 1] < first - 1),
        lambda first: CASE
            WHEN NOT list_contains(list, first + 1) THEN first::VARCHAR
            ELSE first || '-' || list_min(list_filter(list, lambda last: last > first AND NOT list_contains(list, last + 1)))
        END
    ),
    'string_agg', ', '
)::VARCHAR
