-- A row for each trace: what is being ingested as what, and the metadata of the trace.
--
-- part: the number of the trace that the ids of its events begin with.
CREATE OR REPLACE TABLE job AS
WITH
    jobs AS (
        SELECT unnest(
            $jobs::STRUCT(part BIGINT, run VARCHAR, rank INTEGER, rank_source VARCHAR, source VARCHAR, event_count BIGINT, metadata VARCHAR)[]
        ) AS j
    )
SELECT j.j.part, j.j.run, j.j.rank, j.j.rank_source, j.j.source, j.j.event_count, j.j.metadata::JSON AS metadata
FROM jobs AS j
