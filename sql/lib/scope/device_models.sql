-- Model of each device with activity.
--
-- Recorders of AMD devices use device numbers that differ from those in the trace's device list. If all devices of a
-- rank have the same model, that model is used.
CREATE OR REPLACE MACRO lib.device_models(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run     VARCHAR  Run name.
--   rank    INTEGER  Rank of the process.
--   device  BIGINT   Device number as in gpu_ops.
--   name    VARCHAR  Device model; NULL if not recorded.
WITH
    _used AS (
        SELECT DISTINCT g.run, g.rank, g.device
        FROM gpu_ops AS g
        WHERE g.class <> 'sync' AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
    ),
    _only AS (
        SELECT d.run, d.rank, min(d.name) AS name
        FROM devices AS d
        WHERE lib.is_requested(runs, d.run) AND lib.is_requested(ranks, d.rank)
        GROUP BY d.run, d.rank
        HAVING min(d.name) = max(d.name)
    )
SELECT u.run AS run, u.rank AS rank, u.device AS device, coalesce(o.name, d.name) AS name
FROM _used AS u
LEFT JOIN _only AS o ON o.run = u.run AND o.rank = u.rank
LEFT JOIN devices AS d ON d.run = u.run AND d.rank = u.rank AND d.device = u.device
