-- Counter samples, one row per series of an event.
SELECT
    j.run,
    j.rank,
    own_id(x.event_id) AS event_id,
    x.ts - j.first_ts AS ts,
    TRY_CAST(x.pid AS BIGINT) AS pid,
    TRY_CAST(x.tid AS BIGINT) AS tid,
    x.name,
    -- PM sampling names the device in a string such as "GPU 0 Counters"; the CUPTI monitor of PyTorch 2.14 then states no
    -- category. Other device counters give the device number.
    CASE WHEN x.cat IS NULL AND regexp_matches(x.pid, '^GPU ([0-9]+) Counters$') THEN 'hardware_counters' ELSE x.cat END AS category,
    CASE
        WHEN coalesce(x.cat, 'hardware_counters') = 'hardware_counters' THEN TRY_CAST(regexp_extract(x.pid, '^GPU ([0-9]+) Counters$', 1) AS BIGINT)
        WHEN x.cat IN ('mtia_counters', 'xpu_scope_profiler') THEN TRY_CAST(x.pid AS BIGINT)
    END AS device,
    x.series,
    x.value
FROM staged_counters AS x
JOIN rank_frame AS j ON j.part = part_of(x.event_id)
ORDER BY x.event_id, x.series
