-- What communication costs each rank of a MindSpore cluster: moving data, waiting for others.
--
-- By kind of operator, added up over the steps that are wanted; operators of several streams run at
-- once, so that the sums may exceed the steps. A rank that waits little makes the others wait. Only
-- operators that HCCL measured count.
--
-- Title: Communication cost of each rank (MindSpore)
-- Status: stable
-- Since: 0.1
-- Reference: MindSpore Insight, cluster communication
-- Needs: MindSpore cluster data with communication (profile_communication=True)
-- Scope: runs, ranks, steps; its steps were measured whole, no profiler stops inside the last
CREATE OR REPLACE MACRO cluster_communication_cost_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL,
    -- Steps to include; NULL means every step.
    steps BIGINT[] := NULL
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   rank              INTEGER         Rank of the process.
--   operation         VARCHAR         AllReduce, AllGather, Send, Receive and so on.
--   operator_count    BIGINT [count]  Operators, over all steps.
--   communication_ns  BIGINT [ns]     Time in which they moved data.
--   wait_ns           BIGINT [ns]     Time in which they waited for other ranks.
--   wait_pct          DOUBLE [%]      wait / (communication + wait); NULL where both are 0.
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
