-- The sentence of a message: its template with numbers and names in place of the placeholders.
--
-- A placeholder is a field, or a field and a format: {subject}, {gap_count:count}. Formats are
--   count  12,345
--   pct    81.5 %
--   time   3.0 s, 12.4 ms, 870.0 µs or 15 ns, from ns
--   bytes  79.6 GB, 4.2 MB, 1.5 kB or 12 B
--   ratio  1.73
-- and a choice of two strings, {gap_count:gap|gaps}: the first for 1 and true, the second for everything else. Each
-- string may be empty. A field that is NULL or missing is shown as unknown. If the template is NULL, so is the
-- sentence.
CREATE OR REPLACE MACRO lib.message_text(
    -- Template from the table messages.
    template,
    -- Fields of lib.message.
    fields
) AS
-- Returns: VARCHAR  Sentence of the message; NULL if the template is NULL.
list_aggregate(
    list_transform(
        list_transform(
            -- All parts except the first begin with a placeholder. split_part and array_to_string are avoided,
            -- because they are macros that take 2 ms to plan here.
            list_transform(string_split('}' || template, '{'), lambda part: string_split(part, '}')),
            lambda part: {
                'form': substr(part[1], strpos(part[1] || ':', ':') + 1),
                'value': CASE WHEN part[1] = '' THEN '' ELSE coalesce(json_extract_string(fields, string_split(part[1], ':')[1]), 'unknown') END,
                'text_after': part[2]
            }
        ),
        lambda part: CASE
            WHEN part.form = '' THEN part.value
            WHEN contains(part.form, '|') THEN string_split(part.form, '|')[CASE WHEN part.value IN ('1', 'true') THEN 1 ELSE 2 END]
            WHEN part.value = 'unknown' THEN part.value
            WHEN part.form = 'count' THEN format('{:,}', part.value::BIGINT)
            WHEN part.form = 'pct' THEN format('{:.1f} %', part.value::DOUBLE)
            WHEN part.form = 'time' THEN
                CASE
                    WHEN abs(part.value::DOUBLE) >= 999.95e6 THEN format('{:,.1f} s', part.value::DOUBLE / 1e9)
                    WHEN abs(part.value::DOUBLE) >= 999.95e3 THEN format('{:.1f} ms', part.value::DOUBLE / 1e6)
                    WHEN abs(part.value::DOUBLE) >= 1e3 THEN format('{:.1f} µs', part.value::DOUBLE / 1e3)
                    ELSE format('{:.0f} ns', part.value::DOUBLE)
                END
            WHEN part.form = 'bytes' THEN
                CASE
                    WHEN part.value::DOUBLE >= 999.95e6 THEN format('{:,.1f} GB', part.value::DOUBLE / 1e9)
                    WHEN part.value::DOUBLE >= 999.95e3 THEN format('{:.1f} MB', part.value::DOUBLE / 1e6)
                    WHEN part.value::DOUBLE >= 1e3 THEN format('{:.1f} kB', part.value::DOUBLE / 1e3)
                    ELSE format('{:.0f} B', part.value::DOUBLE)
                END
            WHEN part.form = 'ratio' THEN format('{:.2f}', part.value::DOUBLE)
            ELSE error('message: "' || part.form || '" is none of the formats of lib.message_text')
        END || part.text_after
    ),
    'string_agg', ''
)
