-- The first two runs by name; for others: FROM comparison(runs := ['base', 'tuned']), whose times are in ns.
-- A store of one run has nothing to compare: Evidence wants a row, here of NULLs.
SELECT c.* FROM (SELECT 1) AS always LEFT JOIN us.comparison AS c ON true
