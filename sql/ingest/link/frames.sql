-- What the rows of each rank are placed by, as one list: that of a part is at its number plus one.
--
-- The statements that write in event order take it as $frames: a join promises no order.
SELECT list(
    {
        'run': j.run,
        'rank': j.rank,
        'first_ts': j.first_ts,
        'last_step_ts': j.last_step_ts,
        'window_end_ts': j.window_end_ts,
        'recording_end_ts': j.recording_end_ts
    }
    ORDER BY p.part
)
FROM (SELECT unnest(range(max(r.part) + 1)) AS part FROM rank_frame AS r) AS p
LEFT JOIN rank_frame AS j ON j.part = p.part
