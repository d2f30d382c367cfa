-- Communication cost of each rank or host: time transferring data, time waiting for others, and their ratio.
--
-- The ratio is defined as in MindSpore Insight's node-link graph: communication / (communication + wait). A rank with a
-- high ratio hardly waits: other ranks wait for it. Data comes from collectives matched across ranks, and from
-- MindSpore cluster data, which measures both times. Unmatched collectives count only toward unmatched_ns, because it
-- is unknown how much of their duration is waiting. Times are sums over collectives, so each of several concurrent
-- collectives counts in full.
--
-- Title: Communication of each rank
-- Shown: rank, communication_ns, communication_pct, wait_ns, bytes, collective_count, host_name
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight, cluster communication; TraceLens straggler_summary
-- Needs: GPU activity that communicates, or MindSpore cluster data
-- Chart:
--   mark = "stack"
--   title = "Communication and waiting"
--   notes = ["Sum over the collectives of each rank. A rank that hardly waits arrives last, and the others wait for it."]
--   bar = ["rank or host_name"]
--   legend = "Part"
--   whole = "communication"
--   parts.communication_ns = "communication"
--   parts.wait_ns = "wait"
--   parts.unmatched_ns = "unmatched"
CREATE OR REPLACE MACRO communication_by_rank_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    steps BIGINT[] := NULL,
    include_last_profiler_step BOOLEAN := false,
    -- Whether to combine the ranks of a host; ranks with an unknown host keep their own rows.
    by_host BOOLEAN := false
) AS TABLE
-- Columns:
--   run                VARCHAR         Run name.
--   host_name          VARCHAR         Host name; NULL if unknown.
--   rank               INTEGER         Rank of the process; NULL if the row is for a host.
--   rank_count         BIGINT [count]  Number of ranks.
--   collective_count   BIGINT [count]  Number of collectives and point-to-point transfers.
--   bytes              BIGINT [bytes]  Total message size as defined by nccl-tests; NULL unless all sizes are known.
--   communication_ns   BIGINT [ns]     Sum of the transfers of matched collectives, without their waits, overlapped or exposed.
--   wait_ns            BIGINT [ns]     Sum of the waits of matched collectives until the last rank arrives, overlapped or exposed.
--   communication_pct  DOUBLE [%]      communication / (communication + wait); NULL if nothing is matched.
--   unmatched_ns       BIGINT [ns]     Total duration of unmatched collectives.
WITH
    parts AS (
        SELECT
            m.run, m.rank,
            lib.message_bytes(m.collective, m.elem_type, m.in_elems, m.out_elems) AS size,
            -- The part of a kernel's duration that is not waiting is communication.
            CASE WHEN m.found_count > 1 THEN m.dur - m.wait_ns END AS communication_ns,
            CASE WHEN m.found_count > 1 THEN m.wait_ns END AS wait_ns,
            CASE WHEN m.found_count > 1 THEN 0 ELSE m.dur END AS unmatched_ns
        FROM lib.scoped_collectives(runs, ranks, steps, include_last_profiler_step) AS m
        UNION ALL
        SELECT c.run, c.rank, NULL, c.communication_ns, c.wait_ns, 0
        FROM cluster_communication AS c
        WHERE
            c.step IS NOT NULL AND c.communication_ns IS NOT NULL
            AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank) AND lib.is_requested(steps, c.step)
    ),
    summed AS (
        SELECT
            p.run, k.host_name, CASE WHEN by_host AND k.host_name IS NOT NULL THEN NULL ELSE p.rank END AS shown_rank,
            count(DISTINCT p.rank) AS rank_count,
            count(*) AS collective_count,
            CASE WHEN count(p.size) = count(*) THEN sum(p.size)::BIGINT END AS bytes,
            sum(p.communication_ns)::BIGINT AS communication_ns,
            sum(p.wait_ns)::BIGINT AS wait_ns,
            sum(p.unmatched_ns)::BIGINT AS unmatched_ns
        FROM parts AS p
        LEFT JOIN ranks AS k ON k.run = p.run AND k.rank = p.rank
        GROUP BY p.run, k.host_name, shown_rank
    )
SELECT
    s.run,
    s.host_name,
    s.shown_rank AS rank,
    s.rank_count,
    s.collective_count,
    s.bytes,
    s.communication_ns,
    s.wait_ns,
    100 * (s.communication_ns / nullif(s.communication_ns + s.wait_ns, 0)) AS communication_pct,
    s.unmatched_ns
FROM summed AS s
ORDER BY s.run, s.shown_rank, s.host_name
