-- What the reader and the parser set aside or repaired; filled batch by batch.
CREATE OR REPLACE TABLE quarantined (
    event_id BIGINT,
    byte_offset BIGINT,
    byte_count BIGINT,
    is_lost BOOLEAN,
    reason VARCHAR,
    excerpt VARCHAR
)
