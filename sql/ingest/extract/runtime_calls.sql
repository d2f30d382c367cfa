-- Calls of the device runtime and driver API of one batch: any category *_runtime or *_driver.
--
-- No launch names here: what a call launched is found by correlation.
WITH
    decoded AS (
        SELECT
            e.*,
            from_json(
                exact_args(e.args, 'correlation|External id|cbid'),
                '{"correlation": "BIGINT", "External id": "BIGINT", "cbid": "BIGINT"}'
            ) AS a
        FROM batch_events AS e
        WHERE e.target = 'runtime_calls'
    ),
    columns AS (
        SELECT
            d.event_id,
            d.ts,
            d.dur,
            d.pid,
            d.tid,
            d.name,
            d.cat,
            d.a['correlation'] AS correlation,
            coalesce(d.a['External id'], CASE WHEN d.cat = 'Runtime' THEN TRY_CAST(exact_args(d.args, 'external id') ->> '$."external id"' AS BIGINT) END) AS external_id,
            d.a['cbid'] AS cbid,
            d.args
        FROM decoded AS d
    )
SELECT
    c.* EXCLUDE (args),
    CASE
        WHEN NOT starts_with(c.args, '{') OR len(json_keys(c.args)) <> (
            (c.correlation IS NOT NULL)::INTEGER + (c.external_id IS NOT NULL)::INTEGER
            + (c.cbid IS NOT NULL)::INTEGER
        ) THEN c.args
    END AS args
FROM columns AS c
