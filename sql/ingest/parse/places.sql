-- Where the events that were set aside stand in the file, and how they start.
CREATE OR REPLACE TABLE places (
    chunk BIGINT,
    position BIGINT,
    byte_offset BIGINT,
    byte_count BIGINT,
    excerpt VARCHAR
)
