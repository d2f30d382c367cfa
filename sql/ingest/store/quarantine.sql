-- Events that could not be read, with offset and reason, and argument values that do not fit the type of their
-- column.
WITH
    found AS (
        SELECT j.run, j.rank, j.source, q.event_id, q.byte_offset, q.byte_count, q.is_lost, NULL::VARCHAR AS argument, q.reason, q.excerpt
        FROM quarantined AS q
        CROSS JOIN job AS j
        UNION ALL
        SELECT
            j.run, j.rank, j.source, own_id(o.event_id), NULL, NULL, false, o.argument,
            'the argument ' || o.argument || ' is not ' || argument_description(o.argument), o.excerpt
        FROM odd_arguments AS o
        JOIN job AS j ON j.part = part_of(o.event_id)
    )
SELECT f.run, f.rank, f.source, f.event_id, f.byte_offset, f.byte_count, f.is_lost, f.argument, f.reason, f.excerpt
FROM found AS f
ORDER BY f.byte_offset, f.event_id, f.argument
