-- Every event of one batch that no other table takes, whole: nothing is dropped.
CREATE OR REPLACE TEMP VIEW extracted_other_events AS
SELECT e.event_id, e.ts, e.dur, e.pid, e.tid, e.name, e.cat, e.ph AS phase, e.id AS flow_id, e.scope, e.args
FROM batch_events AS e
WHERE e.target = 'other_events'
