-- Contribution of each copy and memset to the bandwidth of its kind, in whole bytes per second.
--
-- Rates are integers, so a running sum of rates returns to exactly 0; with doubles, rounding errors would remain. The
-- kind is only the direction, independent of the vendor's name for it: Memcpy DtoH, HtoD, DtoD, PtoP, ..., Memset, or
-- Memcpy Unknown. Traces in whole microseconds record a short copy with a duration of 0; the caller specifies the
-- duration to use instead. A rate that 64 bits cannot represent is unknown.
CREATE OR REPLACE MACRO lib.copy_rates(
    runs,
    ranks,
    steps,
    include_last_profiler_step,
    -- Duration assumed for copies recorded with duration 0 [ns]; 0 excludes them from the bandwidth.
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
--   dur                BIGINT [ns]     Duration used for the rate.
--   bytes              BIGINT [bytes]  Bytes copied or set.
--   recorded_rate      BIGINT [1]      Recorded bandwidth [bytes/s]; NULL if not recorded.
--   computed_rate      BIGINT [1]      bytes / dur [bytes/s]; NULL if the bytes are not recorded.
--   has_zero_duration  BOOLEAN         Whether the copy was recorded with a duration of 0.
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
