-- Allocations in memory snapshots by operator, module and step, as found in the trace of the same rank.
--
-- The snapshot and the trace of a rank must be in one run: ingest both from one folder. Only allocations during the
-- trace count. They are joined by time if the trace has Unix times that overlap the snapshot, and otherwise by the
-- order of addresses and sizes in the memory events of the trace (profile_memory=True). Rows without matched_by
-- contain allocations that could not be joined: their events were lost, two threads ran operators at the same time, or
-- the sequence matches in several places.
--
-- Title: Allocations of the snapshot by operator
-- Shown: rank, bytes, allocation_count, operator_name, module, step, match_rate, matched_by
-- Status: stable
-- Since: 0.1
-- Scope: runs, ranks; the step column contains the steps
-- Reference: none
-- Needs: memory snapshots with their history, and the trace of the same rank
-- Report: first 9; table; at most 16 ranks; if snapshot_events
CREATE OR REPLACE MACRO snapshot_operators_v1(
    runs VARCHAR[] := NULL,
    ranks INTEGER[] := NULL,
    -- Maximum time between an allocation and its memory event on a shared clock [ns].
    tolerance_ns BIGINT := 1000000,
    -- Minimum number of consecutive allocations to align without a shared clock.
    least_run BIGINT := 4
) AS TABLE
-- Columns:
--   run               VARCHAR         Run name.
--   rank              INTEGER         Rank of the process.
--   device            BIGINT          Device number.
--   step              BIGINT          Profiler step; NULL outside steps.
--   operator_name     VARCHAR         Innermost operator that does more than allocate; NULL outside operators.
--   module            VARCHAR         nn.Module call of the allocation or, in the backward pass, of the forward operator; NULL if none or unknown.
--   matched_by        VARCHAR         How the allocations were joined: by address and time, by time only, or by sequence; NULL if not joined.
--   allocation_count  BIGINT [count]  Number of allocations.
--   bytes             BIGINT [bytes]  Total requested size of the allocations.
--   match_rate        DOUBLE [1]       Share of the device's allocations during the trace that were joined.
WITH
    matches AS MATERIALIZED (
        FROM lib._snapshot_matches(runs, ranks, tolerance_ns, least_run)
    ),
    around AS MATERIALIZED (
        FROM lib.operators_around('matches')
    ),
    rates AS (
        SELECT m.run, m.rank, m.device, count(m.matched_by) / count(*) AS match_rate
        FROM matches AS m
        GROUP BY m.run, m.rank, m.device
    ),
    modules AS (
        SELECT p.run, p.rank, p.event_id, lib.module_name(p.name) AS name
        FROM python_calls AS p
        WHERE starts_with(p.name, 'nn.Module: ')
    )
SELECT
    m.run,
    m.rank,
    m.device,
    m.step,
    a.operator_name,
    p.name AS module,
    m.matched_by,
    count(*) AS allocation_count,
    sum(m.bytes)::BIGINT AS bytes,
    any_value(r.match_rate) AS match_rate
FROM matches AS m
JOIN rates AS r ON r.run = m.run AND r.rank = m.rank AND r.device = m.device
LEFT JOIN around AS a ON a.run = m.run AND a.rank = m.rank AND a.op_id = m.op_id
LEFT JOIN modules AS p ON p.run = m.run AND p.rank = m.rank AND p.event_id = coalesce(m.module_id, a.forward_module_id)
GROUP BY m.run, m.rank, m.device, m.step, a.operator_name, p.name, m.matched_by
ORDER BY m.run, m.rank, m.device, bytes DESC, m.step NULLS LAST, a.operator_name NULLS LAST, p.name NULLS LAST, m.matched_by NULLS LAST
