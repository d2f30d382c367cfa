-- The class of each distinct device activity name.
--
-- `class_rules` is kernel_classes.csv and the user's own rules; $any_rule is all their expressions
-- as one, so that the cross product is paid only by the few names that some rule knows.
CREATE OR REPLACE TEMP TABLE kernel_classes AS
WITH
    known_names AS (
        SELECT DISTINCT g.name
        FROM staged_gpu_ops AS g
        WHERE regexp_matches(g.name, $any_rule, 'i')
    )
SELECT n.name, arg_min({'class': r.class, 'collective': r.collective}, (r.priority, r.position)) AS rule
FROM known_names AS n
JOIN class_rules AS r ON regexp_matches(n.name, r.regex, 'i')
GROUP BY n.name
