-- The call tree and the profiler step of each host event, as the reader of host_events streams them.
--
-- With the kind of host_events: a table that joins only its own kind does so at its own size, and the
-- engine keeps those few narrow rows at hand instead of its own wide ones.
CREATE OR REPLACE TABLE call_tree AS
FROM call_tree_rows
