-- Events that could not be read or had to be repaired, and argument values that do not fit the type of their column.
CREATE OR REPLACE VIEW quarantine AS
-- Columns:
--   run          VARCHAR         Run name: one capture of one job.
--   rank         INTEGER         Rank of the process.
--   source       VARCHAR         Path of the trace file.
--   event_id     BIGINT          Position in traceEvents; NULL if unknown.
--   byte_offset  BIGINT [bytes]  Offset in the (decompressed) file; NULL if unknown.
--   byte_count   BIGINT [bytes]  Length of the bad span, an estimate if a compressed file is damaged there; NULL if unknown.
--   is_lost      BOOLEAN         Whether the event was lost; false if it was repaired and stored.
--   argument     VARCHAR         Argument with an unexpected type, whose column is NULL and whose value is in event_args; NULL if the row concerns the whole event.
--   reason       VARCHAR         Description of the problem. Events longer than 16 MB or nested more than a million brackets deep are not read.
--   excerpt      VARCHAR         Start of the bad span or of the value.
SELECT x.* EXCLUDE (span)
FROM stored.quarantine AS x
