-- Host costs that advice rules report, as time spans.
--
-- Four kinds are reported only for ranks without a device; for other ranks, the rules use device activity and idle
-- time. A blocked line is a frame of the user's code that calls a built-in function which waits or writes a file, or
-- torch.save, outside operators and data loaders.
CREATE OR REPLACE MACRO lib.host_costs(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run          VARCHAR         Run name.
--   rank         INTEGER         Rank of the process.
--   kind         VARCHAR         garbage collection, indexing loop, filled copy or compilation; without a device also data loading, blocked line, zeroed gradients or unfused optimizer.
--   subject      VARCHAR         Name of the activity; NULL if it has none.
--   event_count  BIGINT [count]  Number of events, or of iterations of a loop.
--   ts           BIGINT [ns]     Start time.
--   dur          BIGINT [ns]     Length, above 0.
--   device_ns    BIGINT [ns]     Device time of the same work; 0 if there is none.
--   event_id     BIGINT          event_id of an example.
WITH
    _bare AS (
        SELECT k.run, k.rank
        FROM ranks AS k
        ANTI JOIN gpu_ops AS g ON g.run = k.run AND g.rank = k.rank
        WHERE lib.is_requested(runs, k.run) AND lib.is_requested(ranks, k.rank)
    ),
    _annotations AS (
        SELECT a.run, a.rank, a.event_id, a.name, a.ts, a.dur
        FROM annotations AS a
        WHERE NOT a.on_gpu AND lib.is_requested(runs, a.run) AND lib.is_requested(ranks, a.rank)
    ),
    -- Outermost operators directly inside an optimizer's annotations.
    _optimizer AS (
        SELECT
            a.run, a.rank, a.event_id, a.name, a.ts, a.dur,
            count_if(c.name IN ('aten::zero_', 'aten::_foreach_zero_')) AS zero_count,
            count_if(NOT regexp_matches(c.name, '^aten::_(foreach|fused)_')) AS plain_count
        FROM _annotations AS a
        JOIN _bare AS b ON b.run = a.run AND b.rank = a.rank
        JOIN cpu_ops AS c ON c.run = a.run AND c.rank = a.rank AND c.annotation_id = a.event_id
        WHERE starts_with(a.name, 'Optimizer.') AND c.parent_op_id IS NULL
        GROUP BY ALL
    ),
    -- Threads that run steps.
    _stepping AS (
        SELECT DISTINCT t.run, t.rank, t.pid, t.tid FROM steps AS t WHERE lib.is_requested(runs, t.run) AND lib.is_requested(ranks, t.rank)
        UNION
        SELECT c.run, c.rank, c.pid, c.tid
        FROM cpu_ops AS c
        JOIN _bare AS b ON b.run = c.run AND b.rank = c.rank
        ANTI JOIN steps AS t ON t.run = c.run AND t.rank = c.rank
    ),
    _costs AS (
        SELECT p.run, p.rank, 'garbage collection' AS kind, lib.frame_name(p.name) AS subject, 1 AS event_count, p.ts, p.dur, 0 AS device_ns, p.event_id
        FROM python_calls AS p
        WHERE
            (p.name = 'Python GC' OR regexp_matches(p.name, '^<built-in (function|method) collect[ >]'))
            AND lib.is_requested(runs, p.run) AND lib.is_requested(ranks, p.rank)
        UNION ALL
        SELECT l.run, l.rank, 'indexing loop', l.body, l.event_count, l.ts, l.dur, 0, l.event_id FROM lib._indexing_loops(runs, ranks) AS l
        UNION ALL
        SELECT f.run, f.rank, 'filled copy', f.name, 1, f.ts, f.dur, f.device_ns, f.event_id FROM lib._filled_copies(runs, ranks) AS f
        UNION ALL
        SELECT a.run, a.rank, 'compilation', a.name, 1, a.ts, a.dur, 0, a.event_id FROM _annotations AS a WHERE contains(a.name, '(dynamo_timed)')
        UNION ALL
        -- PyTorch 2.13 records them as operators.
        SELECT c.run, c.rank, 'compilation', c.name, 1, c.ts, c.dur, 0, c.event_id
        FROM cpu_ops AS c
        WHERE contains(c.name, '(dynamo_timed)') AND lib.is_requested(runs, c.run) AND lib.is_requested(ranks, c.rank)
        UNION ALL
        SELECT a.run, a.rank, 'data loading', a.name, 1, a.ts, a.dur, 0, a.event_id
        FROM _annotations AS a
        JOIN _bare AS b ON b.run = a.run AND b.rank = a.rank
        WHERE lib.loads_data(a.name)
        UNION ALL
        SELECT c.run, c.rank, 'data loading', c.name, 1, c.ts, c.dur, 0, c.event_id
        FROM cpu_ops AS c
        JOIN _bare AS b ON b.run = c.run AND b.rank = c.rank
        WHERE starts_with(c.name, 'enumerate(DataLoader)#')
        UNION ALL
        SELECT p.run, p.rank, 'blocked line', coalesce(l.line, lib.frame_name(coalesce(f.name, p.name))), 1, p.ts, p.dur, 0, p.event_id
        FROM python_calls AS p
        JOIN _bare AS b ON b.run = p.run AND b.rank = p.rank
        JOIN _stepping AS s ON s.run = p.run AND s.rank = p.rank AND s.pid = p.pid AND s.tid = p.tid
        LEFT JOIN python_calls AS f ON f.run = p.run AND f.rank = p.rank AND f.event_id = p.parent_frame_id
        LEFT JOIN annotations AS a ON a.run = p.run AND a.rank = p.rank AND a.event_id = p.annotation_id
        LEFT JOIN lib.user_lines('_bare') AS l ON l.run = p.run AND l.rank = p.rank AND l.stack_id = p.stack_id
        WHERE
            (
                lib.is_torch_save(p.name)
                OR regexp_matches(p.name, '^<(built-in (function|method)|method) ''?(sleep|acquire|select|poll|wait|waitpid|join|connect|recv|recv_into|read|readinto|write|fsync)\b')
            )
            AND p.op_id IS NULL AND NOT coalesce(lib.loads_data(a.name), false)
        UNION ALL
        SELECT o.run, o.rank, 'zeroed gradients', o.name, o.zero_count, o.ts, o.dur, 0, o.event_id
        FROM _optimizer AS o
        WHERE starts_with(o.name, 'Optimizer.zero_grad#') AND o.zero_count > 0
        UNION ALL
        SELECT o.run, o.rank, 'unfused optimizer', o.name, o.plain_count, o.ts, o.dur, 0, o.event_id
        FROM _optimizer AS o
        WHERE starts_with(o.name, 'Optimizer.step#') AND o.plain_count > 100
    )
SELECT c.run, c.rank, c.kind, c.subject, c.event_count::BIGINT AS event_count, c.ts, c.dur, c.device_ns, c.event_id
FROM _costs AS c
WHERE c.dur > 0
