-- Share of each rank's communication time that is overlapped by computation.
--
-- communication_ns and overlapped_ns are unions over all streams of the rank. If a rank does not communicate, its
-- overlap_pct is NULL instead of 0. On a rank without a device, gloo's collectives communicate and operators compute.
--
-- Title: Communication overlapped by computation
-- Also: overlap, communication overlap
-- Status: stable
-- Since: 0.1
-- Reference: HTA get_comm_comp_overlap
-- Needs: GPU activity; without it, collectives of gloo
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
    -- Gloo communicates on threads of its own while operators compute. Next to a device, it does not stop the device.
    on_host AS MATERIALIZED (
        SELECT a.run, a.rank, a.ts, a.dur
        FROM annotations AS a
        ANTI JOIN lib.device_ranks(runs, ranks) AS d ON d.run = a.run AND d.rank = a.rank
        WHERE
            starts_with(a.name, 'gloo:')
            AND lib.is_requested(runs, a.run)
            AND lib.is_requested(ranks, a.rank)
            AND lib.is_requested(steps, a.step)
            AND (include_last_profiler_step OR NOT a.in_last_step)
    ),
    spans AS (
        SELECT {'run': g.run, 'rank': g.rank} AS lane, g.class, g.ts, g.dur
        FROM lib.scoped_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        UNION ALL
        SELECT {'run': h.run, 'rank': h.rank}, 'communication', h.ts, h.dur FROM on_host AS h
        UNION ALL
        SELECT {'run': c.run, 'rank': c.rank}, 'computation', c.ts, c.dur FROM lib.computing_operators(runs, 'on_host') AS c
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
