-- Spans of refused chunks that the salvage could not read or had to change, of one batch.
CREATE OR REPLACE TABLE flaws (
    chunk BIGINT,
    position BIGINT,
    byte_offset BIGINT,
    byte_count BIGINT,
    is_lost BOOLEAN,
    reason VARCHAR,
    excerpt VARCHAR
)
