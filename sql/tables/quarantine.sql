-- What could not be read as an event or had to be repaired, and argument values that are not of the form that
-- their column promises.
CREATE OR REPLACE VIEW quarantine AS
-- Columns:
--   run          VARCHAR         Run: one capture of one job.
--   rank         INTEGER         Rank of the process.
--   source       VARCHAR         Trace file.
--   event_id     BIGINT          Position in traceEvents, where known.
--   byte_offset  BIGINT [bytes]  Offset in the (decompressed) file, where known.
--   byte_count   BIGINT [bytes]  Length of the bad span, where known.
--   is_lost      BOOLEAN         The event is in no other table; false: it was repaired and kept.
--   argument     VARCHAR         Argument whose column is NULL because its value has another form; event_args has the value. NULL: the row is about the event.
--   reason       VARCHAR         What is wrong. Events longer than 16 MB or a million brackets deep are not read.
--   excerpt      VARCHAR         Start of the bad span or of the value.
SELECT
    x.run,
    x.rank,
    x.source,
    x.event_id,
    x.byte_offset,
    x.byte_count,
    x.is_lost,
    x.argument,
    x.reason,
    x.excerpt
FROM stored.quarantine AS x
