-- The traces of the batch that are to be read each by itself: those with $parts as their number.
DELETE FROM parsed_events AS p
WHERE list_contains($parts::BIGINT[], p.chunk >> 32)
