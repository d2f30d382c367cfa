-- Pipeline stage of each rank, derived from the ranks that send to each other, and from which of them sends first.
--
-- A rank starts a pipeline if, in most steps, it sends before it has received anything. Between two ranks, forward is
-- the direction that completes first in most steps. The stage of a rank is the length of the longest path of forward
-- messages from a starting rank; ranks of one stage exchange nothing. Messages to a starting rank do not count, such
-- as messages from the last stage to the first if each stage has several parts of the model. If every rank starts, as
-- in a ring, there is no pipeline, and the result is empty.
CREATE OR REPLACE MACRO lib.pipeline_ranks(
    runs
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   rank         INTEGER         Rank of the process, including ranks without a trace.
--   pipeline     INTEGER         Pipeline of the rank, identified by its first-stage rank (the lowest, if there are several).
--   stage        INTEGER         Pipeline stage, from 0.
--   stage_count  BIGINT [count]  Number of stages of the run.
WITH RECURSIVE
    _messages AS MATERIALIZED (
        SELECT m.run, m.rank, m.step, m.is_send, m.src_rank, m.dst_rank, m.start_ns, m.end_ns
        FROM lib.p2p_messages(runs) AS m
    ),
    _openings AS (
        SELECT
            m.run, m.rank, m.step,
            min(CASE WHEN m.is_send THEN m.start_ns END) AS first_send,
            min(CASE WHEN NOT m.is_send THEN m.end_ns END) AS first_received
        FROM _messages AS m
        GROUP BY m.run, m.rank, m.step
    ),
    _starts AS (
        SELECT o.run, o.rank, 2 * count_if(coalesce(o.first_send < o.first_received, o.first_send IS NOT NULL)) > count(*) AS begins
        FROM _openings AS o
        GROUP BY o.run, o.rank
    ),
    _firsts AS (
        SELECT
            m.run, m.step, least(m.src_rank, m.dst_rank) AS low, greatest(m.src_rank, m.dst_rank) AS high,
            arg_min(m.src_rank, (m.end_ns, m.src_rank)) AS first_src
        FROM _messages AS m
        GROUP BY m.run, m.step, low, high
    ),
    _directions AS (
        SELECT f.run, f.low, f.high, 2 * count_if(f.first_src = f.low) >= count(*) AS goes_up
        FROM _firsts AS f
        GROUP BY f.run, f.low, f.high
    ),
    _ways AS MATERIALIZED (
        SELECT
            d.run,
            CASE WHEN d.goes_up THEN d.low ELSE d.high END AS src,
            CASE WHEN d.goes_up THEN d.high ELSE d.low END AS dst
        FROM _directions AS d
    ),
    _beginnings AS (
        SELECT s.run, s.rank FROM _starts AS s WHERE s.begins
        UNION
        -- A rank without a trace, to which no rank sends.
        SELECT w.run, w.src
        FROM _ways AS w
        ANTI JOIN _starts AS s ON s.run = w.run AND s.rank = w.src
        ANTI JOIN _ways AS v ON v.run = w.run AND v.dst = w.src
    ),
    _onward AS MATERIALIZED (
        SELECT w.run, w.src, w.dst
        FROM _ways AS w
        ANTI JOIN _beginnings AS b ON b.run = w.run AND b.rank = w.dst
    ),
    _reached AS (
        SELECT b.run, b.rank, b.rank AS pipeline, 0 AS stage FROM _beginnings AS b
        UNION
        SELECT w.run, w.dst, r.pipeline, r.stage + 1
        FROM _reached AS r
        JOIN _onward AS w ON w.run = r.run AND w.src = r.rank
        -- Longer paths are cycles.
        WHERE r.stage < 255
    ),
    _staged AS (
        SELECT r.run, r.rank, min(r.pipeline) AS pipeline, max(r.stage) AS stage
        FROM _reached AS r
        GROUP BY r.run, r.rank
    ),
    _sized AS (
        SELECT s.*, max(s.stage) OVER (PARTITION BY s.run) + 1::BIGINT AS stage_count
        FROM _staged AS s
    )
SELECT z.run, z.rank, z.pipeline, z.stage, z.stage_count
FROM _sized AS z
WHERE z.stage_count > 1
