-- Allocator events of one batch (profile_memory=True): positive bytes allocate, negative free.
--
-- Their "Bytes" and the copies' "bytes" differ only in case, so no single struct holds both.
WITH
    decoded AS (
        SELECT
            e.*,
            from_json(
                exact_args(e.args, 'Addr|Bytes|Total Allocated|Total Reserved|Device Type|Device Id|Ev Idx'),
                '{"Addr": "UBIGINT", "Bytes": "BIGINT", "Total Allocated": "BIGINT", "Total Reserved": "BIGINT", "Device Type": "INTEGER", "Device Id": "BIGINT", "Ev Idx": "BIGINT"}'
            ) AS a
        FROM batch_events AS e
        WHERE e.target = 'memory_events'
    ),
    columns AS (
        SELECT
            d.event_id,
            d.ts,
            d.pid,
            d.tid,
            TRY_CAST(d.a['Addr'] AS BIGINT) AS addr,
            d.a['Bytes'] AS bytes,
            d.a['Total Allocated'] AS total_allocated_bytes,
            d.a['Total Reserved'] AS total_reserved_bytes,
            d.a['Device Type'] AS device_type,
            d.a['Device Id'] AS device,
            d.a['Ev Idx'] AS profiler_event_index,
            d.args
        FROM decoded AS d
    )
SELECT
    c.* EXCLUDE (args),
    CASE
        WHEN NOT starts_with(c.args, '{') OR len(json_keys(c.args)) <> (
            (c.addr IS NOT NULL)::INTEGER + (c.bytes IS NOT NULL)::INTEGER
            + (c.total_allocated_bytes IS NOT NULL)::INTEGER + (c.total_reserved_bytes IS NOT NULL)::INTEGER
            + (c.device_type IS NOT NULL)::INTEGER + (c.device IS NOT NULL)::INTEGER
            + (c.profiler_event_index IS NOT NULL)::INTEGER
        ) THEN c.args
    END AS args
FROM columns AS c
