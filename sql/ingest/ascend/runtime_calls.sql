-- Ascend's task queue: Enqueue on the thread of the operator, Dequeue where the device is called.
--
-- Both carry one correlation; the launch is the one that starts first, so inside the operator.
INSERT INTO staged_runtime_calls BY NAME
SELECT
    o.event_id,
    o.ts,
    o.dur,
    o.pid,
    o.tid,
    o.name,
    o.cat,
    TRY_CAST(o.args ->> '$.correlation_id' AS BIGINT) AS correlation,
    CASE WHEN TRY_CAST(o.args ->> '$.correlation_id' AS BIGINT) IS NULL OR len(json_keys(o.args)) <> 1 THEN o.args END AS args
FROM staged_other_events AS o
WHERE o.phase = 'X' AND o.cat IN ('enqueue', 'dequeue')
