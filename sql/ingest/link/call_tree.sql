-- The call tree, as the reader of host_events streams it.
CREATE OR REPLACE TEMP TABLE call_tree AS
FROM call_tree_rows
