-- Columns of events as rows, with their values as strings: one row per event and non-NULL column.
CREATE OR REPLACE MACRO lib._cells(
    -- Name of a relation with run, rank, event_id and further columns.
    event_rows
) AS TABLE
-- Columns:
--   run          VARCHAR  Run name.
--   rank         INTEGER  Rank of the process.
--   event_id     BIGINT   Position of the event in traceEvents.
--   column_name  VARCHAR  Name of the column.
--   cell         VARCHAR  Value as a string.
WITH
    _texts AS (
        SELECT e.run, e.rank, e.event_id, COLUMNS(e.* EXCLUDE (run, rank, event_id))::VARCHAR
        FROM query_table(event_rows) AS e
    ),
    _cells AS (
        UNPIVOT _texts ON COLUMNS(* EXCLUDE (run, rank, event_id)) INTO NAME column_name VALUE cell
    )
SELECT c.run, c.rank, c.event_id, c.column_name, c.cell
FROM _cells AS c
