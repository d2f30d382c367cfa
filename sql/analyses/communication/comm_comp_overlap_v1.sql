-- Share of each GPU's communication time that is overlapped by computation.
--
-- communication_ns and overlapped_ns are unions over all streams of the rank. If a rank does not communicate, its
-- overlap_pct is NULL instead of 0.
--
-- Title: Communication overlapped by computation
-- Also: overlap, communication overlap
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_comm_comp_overlap
-- Needs: GPU activity
-- Report: first 4
-- Chart:
--   mark = "stack"
--   title = "Communication overlapped by computation"
--   notes = ["All communication of each rank. Overlapped: the rank computes at the same time. Exposed: it does not."]
--   legend = "Communication"
--   whole = "communication"
--   parts.overlapped_ns = ["overlapped", "computation+communication"]
--   total = "communication_ns"
--   rest = ["exposed", "communication"]
CREATE OR REPLACE MACRO comm_comp_overlap_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false
) AS TABLE
-- Columns:
--   run               VARCHAR      Run name.
--   rank              INTEGER      Rank of the process.
--   communication_ns  BIGINT [ns]  Time with any collective running: transfer and wait, overlapped or exposed.
--   overlapped_ns     BIGINT [ns]  Time with communication and computation running.
--   overlap_pct       DOUBLE [%]   overlapped / communication; NULL without communication.
WITH
    spans AS (
        SELECT {'run': g.run, 'rank': g.rank} AS lane, g.class, g.ts, g.dur
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
    ),
    times AS (
        SELECT
            c.lane,
            coalesce(sum(c.dur) FILTER (c.communicates), 0)::BIGINT AS communication_ns,
            coalesce(sum(c.dur) FILTER (c.communicates AND c.computes), 0)::BIGINT AS overlapped_ns
        FROM lib.class_segments('spans') AS c
        GROUP BY c.lane
    )
SELECT
    t.lane.run AS run,
    t.lane.rank AS rank,
    t.communication_ns,
    t.overlapped_ns,
    100::DOUBLE * t.overlapped_ns / nullif(t.communication_ns, 0) AS overlap_pct
FROM times AS t
ORDER BY run, rank
