-- User annotations of one batch: record_function ranges on the host and their copies on the device.
WITH
    decoded AS (
        SELECT
            e.*,
            from_json(
                exact_args(e.args, 'External id|Record function id|Ev Idx'),
                '{"External id": "BIGINT", "Record function id": "BIGINT", "Ev Idx": "BIGINT"}'
            ) AS a
        FROM batch_events AS e
        WHERE e.target = 'annotations'
    ),
    columns AS (
        SELECT
            d.event_id,
            d.ts,
            d.dur,
            d.pid,
            d.tid,
            d.name,
            d.cat = 'gpu_user_annotation' AS on_gpu,
            d.a['External id'] AS external_id,
            d.a['Record function id'] AS record_function_id,
            d.a['Ev Idx'] AS profiler_event_index,
            d.args
        FROM decoded AS d
    )
SELECT
    c.* EXCLUDE (args),
    CASE
        WHEN NOT starts_with(c.args, '{') OR len(json_keys(c.args)) <> (
            (c.external_id IS NOT NULL)::INTEGER + (c.record_function_id IS NOT NULL)::INTEGER
            + (c.profiler_event_index IS NOT NULL)::INTEGER
        ) THEN c.args
    END AS args
FROM columns AS c
