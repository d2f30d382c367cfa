-- Every event of one batch that no other table takes, whole: nothing is dropped.
SELECT e.event_id, e.ts, e.dur, e.pid, e.tid, e.name, e.cat, e.ph AS phase, e.id AS flow_id, e.scope, e.args
FROM batch_events AS e
WHERE e.target = 'other_events'
