-- Flow events of one batch: arrows between events (host ▸ device, forward ▸ backward).
SELECT e.event_id, e.ts, e.pid, e.tid, e.name, e.cat, e.ph AS phase, e.id AS flow_id, e.bp AS binding_point, e.args
FROM batch_events AS e
WHERE e.target = 'flows'
