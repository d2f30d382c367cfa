-- What has become device activity or a call of the task queue is no other event any more.
DELETE FROM staged_other_events AS o
WHERE
    (o.phase = 'X' AND o.cat IN ('enqueue', 'dequeue'))
    OR o.event_id IN (SELECT d.event_id FROM ascend_device_events AS d)
