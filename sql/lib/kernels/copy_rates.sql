-- Copies and memsets as what they add to the bandwidth of their kind, in whole bytes per second.
--
-- Whole numbers add up and go back to exactly zero; doubles leave residues. The kind is direction and nothing else,
-- whatever the vendor calls it: Memcpy DtoH, HtoD, DtoD, PtoP, ..., Memset, or Memcpy Unknown. Traces of whole
-- microseconds record a short copy with a duration of 0: it counts with the duration that the caller gives it. A rate
-- that 64 bits cannot hold is unknown.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.copy_rates(
    -- Runs to include; NULL means every run.
    runs,
    -- Ranks to include; NULL means every rank.
    ranks,
    -- Profiler steps to include; NULL means every step and all activity outside steps.
    steps,
    -- Whether to include the last profiler step.
    include_last_profiler_step,
    -- Duration of a copy that was recorded with none [ns]; 0 leaves it out of the bandwidth.
    zero_duration_as_ns
) AS TABLE
-- Columns:
--   run                VARCHAR         Run name.
--   rank               INTEGER         Rank of the process.
--   span               INTEGER         Recording of the rank.
--   device             BIGINT          Device number.
--   name               VARCHAR         Kind of copy.
--   event_id           BIGINT          event_id of the copy.
--   ts                 BIGINT [ns]     Start time.
--   dur                BIGINT [ns]     Duration that counts.
--   bytes              BIGINT [bytes]  Bytes.
--   recorded_rate      BIGINT [1]      Bandwidth as recorded [bytes/s]; NULL if none is.
--   computed_rate      BIGINT [1]      bytes / dur [bytes/s]; NULL if the bytes are not recorded.
--   has_zero_duration  BOOLEAN         Recorded with a duration of 0.
WITH
    _copies AS (
        SELECT
            g.*,
            CASE WHEN g.dur = 0 THEN zero_duration_as_ns ELSE g.dur END AS counted_dur,
            regexp_extract(g.name, '^(?:hip)?Memcpy ?([A-Z]to[A-Z])', 1) AS direction,
            regexp_extract(g.name, '^Copy(Device|Host)To(Device|Host)', ['a', 'b']) AS ends
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        WHERE g.class = 'memory'
    )
SELECT
    c.run,
    c.rank,
    c.span,
    c.device,
    CASE
        WHEN c.kind = 'memset' OR starts_with(c.name, 'Memset') THEN 'Memset'
        WHEN c.direction <> '' THEN 'Memcpy ' || c.direction
        WHEN c.ends.a <> '' THEN 'Memcpy ' || c.ends.a[1] || 'to' || c.ends.b[1]
        ELSE 'Memcpy Unknown'
    END AS name,
    c.event_id,
    c.ts,
    c.counted_dur AS dur,
    c.bytes,
    TRY_CAST(round(c.bandwidth_gbps * 1e9) AS BIGINT) AS recorded_rate,
    TRY_CAST(c.bytes::HUGEINT * 1_000_000_000 // nullif(c.counted_dur, 0) AS BIGINT) AS computed_rate,
    c.dur = 0 AS has_zero_duration
FROM _copies AS c
