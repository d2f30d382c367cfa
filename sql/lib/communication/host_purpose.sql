-- Purpose of host work, identified by the name of an event: loading data or saving a checkpoint.
CREATE OR REPLACE MACRO lib.host_purpose(
    -- Name of an operator, an annotation or a Python call.
    event_name
) AS
-- Returns: VARCHAR  data loading or checkpoint; NULL for other names.
CASE
    WHEN lib.loads_data(event_name) THEN 'data loading'
    WHEN regexp_matches(event_name, 'checkpoint|torch\.save|(^|[^a-z])save_', 'i') THEN 'checkpoint'
END
