-- Ascend's device activity as that of any other vendor.
--
-- The category stands for what the name says: copies, events and notifications between streams,
-- everything else is a kernel. A collective counts as many elements as it says.
INSERT INTO staged_gpu_ops BY NAME
SELECT
    o.event_id,
    o.ts,
    o.dur,
    o.pid,
    o.tid,
    o.name,
    CASE
        WHEN regexp_matches(o.name, '^mem(cpy|copy)_?async$', 'i') THEN 'gpu_memcpy'
        WHEN regexp_matches(o.name, '^(event|notify)_(wait|record)$', 'i') THEN 'cuda_sync'
        ELSE 'kernel'
    END AS cat,
    d.device,
    d.stream,
    d.correlation,
    CASE WHEN o.name LIKE 'hcom\_allReduce%' ESCAPE '\' THEN TRY_CAST(o.args ->> '$.count' AS BIGINT) END AS in_elems,
    CASE WHEN o.name LIKE 'hcom\_allReduce%' ESCAPE '\' THEN TRY_CAST(o.args ->> '$.count' AS BIGINT) END AS out_elems,
    CASE WHEN d.is_collective THEN o.args ->> '$.data_type' END AS elem_type,
    o.args
FROM staged_other_events AS o
JOIN ascend_device_events AS d ON d.event_id = o.event_id
