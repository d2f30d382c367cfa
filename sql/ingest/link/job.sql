-- One row: what is being ingested as what, and the metadata of the trace.
CREATE OR REPLACE TABLE job AS
SELECT
    $run::VARCHAR AS run,
    $rank::INTEGER AS rank,
    $rank_source::VARCHAR AS rank_source,
    $source::VARCHAR AS source,
    $event_count::BIGINT AS event_count,
    $metadata::JSON AS metadata
