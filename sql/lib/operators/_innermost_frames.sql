-- Innermost Python frames around events, from the frames of the Python tracer: one list per stack.
--
-- Frames that torch's profiler omits from recorded stacks are omitted here too.
CREATE OR REPLACE MACRO lib._innermost_frames(
    runs,
    ranks,
    -- Number of frames to return; 0: no rows.
    frame_count
) AS TABLE
-- Columns:
--   run       VARCHAR    Run name.
--   rank      INTEGER    Rank of the process.
--   stack_id  BIGINT     Row of stacks that names the event and its enclosing events.
--   frames    VARCHAR[]  Frames and nn.Module calls, innermost first; for a frame, without the frame itself.
WITH RECURSIVE
    _stacks AS MATERIALIZED (
        SELECT
            s.run, s.rank, s.stack_id, s.parent_stack_id, s.name,
            s.kind IN ('frame', 'module') AND len(lib.counted_stack(s.name)) > 0 AS is_frame
        FROM stacks AS s
        WHERE frame_count > 0 AND lib.is_requested(runs, s.run) AND lib.is_requested(ranks, s.rank)
    ),
    -- Level by level over few rows, because stacks are distinct. The column inside contains the frames for the stacks
    -- below.
    _framed(run, rank, stack_id, frames, inside) AS (
        SELECT s.run, s.rank, s.stack_id, []::VARCHAR[], CASE WHEN s.is_frame THEN [s.name] ELSE []::VARCHAR[] END
        FROM _stacks AS s
        WHERE s.parent_stack_id IS NULL
        UNION ALL
        SELECT s.run, s.rank, s.stack_id, f.inside, CASE WHEN s.is_frame THEN list_prepend(s.name, f.inside)[:frame_count] ELSE f.inside END
        FROM _framed AS f
        JOIN _stacks AS s ON s.run = f.run AND s.rank = f.rank AND s.parent_stack_id = f.stack_id
    )
SELECT f.run, f.rank, f.stack_id, f.frames
FROM _framed AS f
