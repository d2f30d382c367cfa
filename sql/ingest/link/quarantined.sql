-- What the reader and the parser set aside; filled batch by batch.
CREATE OR REPLACE TEMP TABLE quarantined (
    event_id BIGINT,
    byte_offset BIGINT,
    byte_count BIGINT,
    reason VARCHAR,
    excerpt VARCHAR
)
