-- Communication cost of each rank in a MindSpore cluster: time transferring data and time waiting for other ranks.
--
-- Times are summed by kind of operator over the requested steps. Operators on several streams run concurrently, so the
-- sums may exceed the step time. The other ranks wait for the rank with the least wait time. Only operators that HCCL
-- measured are included.
--
-- Title: Communication cost of each rank (MindSpore)
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight, cluster communication
-- Needs: MindSpore cluster data with communication (profile_communication=True)
-- Scope: runs, ranks, steps; the recorder measures only complete steps, so the last step is complete too
CREATE OR REPLACE MACRO cluster_communication_cost_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Steps to include; NULL means every step.
    steps BIGINT[] := NULL
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   rank              INTEGER         Rank of the process.
--   operation         VARCHAR         Kind of operator: AllReduce, AllGather, Send, Receive and so on.
--   operator_count    BIGINT [count]  Number of operators over all steps.
--   communication_ns  BIGINT [ns]     Time transferring data.
--   wait_ns           BIGINT [ns]     Time waiting for other ranks.
--   wait_pct          DOUBLE [%]      wait / (communication + wait); NULL if both are 0.
SELECT
    c.run,
    c.rank,
    c.kind AS operation,
    count(*) AS operator_count,
    sum(c.communication_ns)::BIGINT AS communication_ns,
    sum(c.wait_ns)::BIGINT AS wait_ns,
    100::DOUBLE * sum(c.wait_ns) / nullif(sum(c.communication_ns) + sum(c.wait_ns), 0)::DOUBLE AS wait_pct
FROM cluster_communication AS c
WHERE
    c.step IS NOT NULL
    AND c.communication_ns IS NOT NULL
    AND lib.is_requested(runs, c.run)
    AND lib.is_requested(ranks, c.rank)
    AND lib.is_requested(steps, c.step)
GROUP BY c.run, c.rank, c.kind
ORDER BY c.run, c.rank, operation
