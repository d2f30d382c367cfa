-- Their repaired text takes the place of the chunks that were refused.
DELETE FROM parsed_events AS p
WHERE p.target = 'refused'
