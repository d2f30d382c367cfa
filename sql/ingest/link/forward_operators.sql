-- Forward operator of each backward operator: one row per operator, in event order.
--
-- Operators are joined by the fwdbwd arrows of the trace: an arrow begins at the start of the forward operator and ends
-- at the start of the backward operator. In traces without arrows, operators are joined by autograd's sequence
-- number: a backward operator belongs to the first forward operator with the same number that started before it, the
-- outermost one if several started at the same time.
CREATE OR REPLACE TABLE forward_operators AS
WITH
    arrows AS (
        SELECT part_of(f.event_id) AS part, f.flow_id, f.phase, f.pid, f.tid, f.ts
        FROM staged_flows AS f
        WHERE f.cat = 'fwdbwd'
    ),
    ends AS (
        SELECT a.part, a.flow_id, a.phase, c.event_id, c.ts, c.dur, c.sequence_number
        FROM arrows AS a
        JOIN staged_cpu_ops AS c ON c.pid = a.pid AND c.tid = a.tid AND c.ts = a.ts AND part_of(c.event_id) = a.part
    ),
    -- Several operators may start in the same microsecond: pair operators with equal sequence numbers, otherwise the
    -- outermost operators.
    pairs AS (
        SELECT
            b.part,
            b.flow_id,
            arg_min(
                {'backward': b.event_id, 'forward': f.event_id, 'ts': f.ts, 'dur': f.dur},
                (f.sequence_number IS DISTINCT FROM b.sequence_number, -b.dur, b.event_id, -f.dur, f.event_id)
            ) AS ids
        FROM ends AS b
        JOIN ends AS f ON f.flow_id = b.flow_id AND f.part = b.part AND f.phase = 's'
        WHERE b.phase = 'f'
        GROUP BY b.part, b.flow_id
    ),
    by_arrow AS (
        SELECT p.ids.backward AS event_id, arg_min(p.ids.forward, (p.ids.ts, -p.ids.dur, p.ids.forward)) AS fwd_op_id
        FROM pairs AS p
        GROUP BY p.ids.backward
    ),
    -- Filter before joining: a trace with arrows contributes nothing, so its millions of operators are not held in
    -- memory.
    without_arrows AS (
        SELECT c.event_id, c.ts, c.dur, c.sequence_number, c.fwd_thread_id
        FROM staged_cpu_ops AS c
        ANTI JOIN (SELECT DISTINCT part_of(a.event_id) AS part FROM by_arrow AS a) AS a ON a.part = part_of(c.event_id)
        WHERE c.sequence_number >= 0
    ),
    by_sequence AS (
        SELECT b.event_id, arg_min(f.event_id, (f.ts, -f.dur, f.event_id)) AS fwd_op_id
        FROM without_arrows AS b
        JOIN without_arrows AS f ON f.sequence_number = b.sequence_number AND part_of(f.event_id) = part_of(b.event_id)
        WHERE b.fwd_thread_id > 0 AND coalesce(f.fwd_thread_id, 0) = 0 AND f.ts < b.ts
        GROUP BY b.event_id
    ),
    found AS (
        FROM by_arrow
        UNION ALL
        FROM by_sequence
    )
SELECT c.event_id, f.fwd_op_id
FROM staged_cpu_ops AS c
LEFT JOIN found AS f ON f.event_id = c.event_id
ORDER BY c.event_id
