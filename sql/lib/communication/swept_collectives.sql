-- Collectives that take step time. Gloo on the host is excluded if the rank has a device, because it does not stop
-- the device.
CREATE OR REPLACE MACRO lib.swept_collectives(
    runs,
    ranks
) AS TABLE
-- Columns: those of matched_collectives.
SELECT m.*
FROM matched_collectives AS m
LEFT JOIN lib.device_ranks(runs, ranks) AS d ON d.run = m.run AND d.rank = m.rank
WHERE lib.is_requested(runs, m.run) AND lib.is_requested(ranks, m.rank) AND (NOT m.on_host OR d.rank IS NULL)
