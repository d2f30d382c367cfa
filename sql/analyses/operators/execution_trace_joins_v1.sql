-- How many nodes of an execution trace are joined to events of the trace of the same rank, and why others are not.
--
-- Each node counts once. Nodes of the process and its threads have no event.
--
-- Title: Execution traces joined to traces
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; nodes have no steps of their own
-- Reference: none
-- Needs: execution traces (torch.profiler.ExecutionTraceObserver) next to the traces of the same ranks
CREATE OR REPLACE MACRO execution_trace_joins_v1(
    -- Runs to include; NULL means every run.
    runs VARCHAR[] := NULL,
    -- Ranks to include; NULL means every rank.
    ranks INTEGER[] := NULL
) AS TABLE
-- Columns:
--   run           VARCHAR         Run name.
--   rank          INTEGER         Rank of the process.
--   outcome       VARCHAR         joined; process or thread (no call); no trace; no event with its id; event with its id has another name; ids of another numbering; event at its position has another name.
--   node_count    BIGINT [count]  Nodes.
--   share_pct     DOUBLE [%]      Share of the nodes of the rank.
--   example       VARCHAR         Name of the first of these nodes.
--   match_method  VARCHAR         How they are joined: id, or order (position on the thread, as autograd's sequence numbers place it); NULL if not joined.
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
