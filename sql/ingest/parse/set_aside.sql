-- Events that cannot be placed in time, until their place in the file is known; filled batch by batch.
CREATE OR REPLACE TABLE set_aside (
    event_id BIGINT,
    chunk BIGINT,
    position BIGINT,
    chunk_offset BIGINT,
    reason VARCHAR
)
