-- Number of execution-trace nodes joined to events in the same rank's trace, and why other nodes are not joined.
--
-- Each node counts once. Nodes that represent the process or its threads have no event.
--
-- Title: Execution traces joined to traces
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; nodes have no steps of their own
-- Reference: none
-- Needs: execution traces (torch.profiler.ExecutionTraceObserver) next to the traces of the same ranks
CREATE OR REPLACE MACRO execution_trace_joins_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   outcome       VARCHAR         joined; process or thread (no call); no trace; no event with its id; event with its id has another name; ids of another numbering; event at its position has another name.
--   node_count    BIGINT [count]  Number of nodes.
--   share_pct     DOUBLE [%]      node_count as a share of the rank's nodes.
--   example       VARCHAR         Name of the first node in the row.
--   match_method  VARCHAR         How the nodes are joined: id, or order (position on the thread, determined from autograd's sequence numbers); NULL if not joined.
SELECT
    e.run,
    e.rank,
    e.outcome,
    count(*) AS node_count,
    100 * count(*) / sum(count(*)) OVER (PARTITION BY e.run, e.rank) AS share_pct,
    arg_min(e.name, e.node_id) AS example,
    e.match_method
FROM lib.execution_trace_events(runs, ranks) AS e
GROUP BY e.run, e.rank, e.outcome, e.match_method
ORDER BY e.run, e.rank, node_count DESC, e.outcome, e.match_method
