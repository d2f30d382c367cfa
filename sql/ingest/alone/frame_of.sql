-- The frame of the only trace, from the list of link/frames.sql.
CREATE OR REPLACE MACRO frame_of(frames, id) AS
    (frames::STRUCT(run VARCHAR, rank INTEGER, first_ts BIGINT, last_step_ts BIGINT, window_end_ts BIGINT, recording_end_ts BIGINT)[])[1]
