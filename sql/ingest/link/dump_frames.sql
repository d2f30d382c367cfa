-- Placeholders for the unknown clock and devices of a rank that has only a Flight Recorder dump.

-- name: rank_frame
-- One row per dump, like the rows of link/rank_frames for traces.
CREATE OR REPLACE TABLE rank_frame AS
SELECT
    j.part,
    j.run,
    j.rank,
    j.first_rank,
    NULL::BIGINT AS base_time_ns,
    NULL::BIGINT AS first_ts,
    NULL::BIGINT AS last_ts,
    NULL::BIGINT AS start_ns,
    NULL::BIGINT AS last_step_ts,
    NULL::BIGINT AS window_end_ts,
    NULL::BIGINT AS recording_end_ts
FROM job AS j;

-- name: odd_arguments
-- No rows: a dump has no event arguments.
CREATE OR REPLACE TABLE odd_arguments (event_id BIGINT, argument VARCHAR, excerpt VARCHAR);

-- name: described_devices
-- No rows: a dump does not describe devices.
CREATE OR REPLACE TABLE described_devices AS
SELECT NULL::VARCHAR AS run, NULL::INTEGER AS rank, NULL::VARCHAR AS name
WHERE false;
