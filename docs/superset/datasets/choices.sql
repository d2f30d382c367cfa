-- What the filters offer: a row a step of a rank, once for each tag of its run.
SELECT
    k.run,
    k.rank,
    s.step,
    t.tag || '=' || t.tag_value AS tag,
    k.run AS control_run,
    k.run AS test_run
FROM ranks AS k
LEFT JOIN runs AS r ON r.run = k.run
LEFT JOIN steps AS s ON s.run = k.run AND s.rank = k.rank AND NOT (s.is_last AND r.drops_last_step)
LEFT JOIN run_tags AS t ON t.run = k.run
