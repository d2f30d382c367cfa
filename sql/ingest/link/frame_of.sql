-- The frame of the trace that an event is of, from the list of link/frames.sql.
CREATE OR REPLACE MACRO frame_of(frames, id) AS
    (frames::STRUCT(run VARCHAR, rank INTEGER, first_ts BIGINT, last_step_ts BIGINT, window_end_ts BIGINT, recording_end_ts BIGINT)[])[part_of(id) + 1]
