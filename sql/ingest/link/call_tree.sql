-- The call tree and the profiler step of each host event, in event order: those of one kind stand as
-- the rows of its staged table do, which are too wide to be sorted, or to be joined.
--
-- With the kind of host_events, by which each table takes its own rows.
CREATE OR REPLACE TABLE call_tree AS
FROM call_tree_rows AS r
ORDER BY r.event_id
