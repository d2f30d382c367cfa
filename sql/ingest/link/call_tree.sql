-- The call tree and the profiler step of each host event, as the reader of host_events streams them.
CREATE OR REPLACE TEMP TABLE call_tree AS
FROM call_tree_rows
