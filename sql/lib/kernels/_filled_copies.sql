-- Tensors filled on the host and immediately copied to the device, although they could be created there.
--
-- As in torch's ExtraCUDACopyPattern, aten::fill_, aten::zero_, aten::normal_ or aten::uniform_ ran last before
-- aten::to, or before a separate copy. In addition, the fill must be inside an operator that creates a tensor, such
-- as aten::zeros. This excludes a model that is copied after its parameters were initialized. The copy must reach the
-- device, the fill must launch nothing, and both must have the same shape if shapes are recorded.
CREATE OR REPLACE MACRO lib._filled_copies(
    runs,
    ranks
) AS TABLE
-- Columns:
--   run        VARCHAR      Run name.
--   rank       INTEGER      Rank of the process.
--   name       VARCHAR      Operator that creates and fills the tensor.
--   ts         BIGINT [ns]  Start of that operator.
--   dur        BIGINT [ns]  Time until the end of the copying operator.
--   device_ns  BIGINT [ns]  Duration of the copy on the device.
--   event_id   BIGINT       event_id of the copying operator.
WITH
    _copies AS (
        SELECT c.run, c.rank, c.pid, c.tid, c.parent_op_id, c.event_id, c.ts, c.ts + c.dur AS end_ts, c.input_dims, sum(g.dur)::BIGINT AS device_ns
        FROM gpu_ops AS g
        JOIN cpu_ops AS c ON c.run = g.run AND c.rank = g.rank AND c.event_id = g.op_id
        WHERE
            g.kind = 'memcpy' AND regexp_matches(g.name, 'HtoD|HostToDevice') AND NOT g.is_suspect AND c.name = 'aten::copy_'
            AND lib.is_requested(runs, g.run) AND lib.is_requested(ranks, g.rank)
        GROUP BY ALL
    ),
    -- aten::to, aten::_to_copy, aten::copy_; older versions do not have aten::_to_copy.
    _roots AS MATERIALIZED (
        SELECT
            c.run, c.rank, c.pid, c.tid, c.input_dims, c.device_ns,
            coalesce(g.event_id, p.event_id, c.event_id) AS event_id,
            coalesce(g.ts, p.ts, c.ts) AS ts,
            greatest(c.end_ts, p.ts + p.dur, g.ts + g.dur) AS end_ts
        FROM _copies AS c
        LEFT JOIN cpu_ops AS p ON p.run = c.run AND p.rank = c.rank AND p.event_id = c.parent_op_id AND p.name IN ('aten::to', 'aten::_to_copy')
        LEFT JOIN cpu_ops AS g ON g.run = p.run AND g.rank = p.rank AND g.event_id = p.parent_op_id AND g.name = 'aten::to'
    ),
    -- Operators that created a tensor on the host, with the innermost operator that filled it.
    _fills AS (
        SELECT f.run, f.rank, f.pid, f.tid, f.event_id, f.input_dims, m.name, m.ts, m.ts + m.dur AS end_ts
        FROM cpu_ops AS f
        JOIN cpu_ops AS m ON m.run = f.run AND m.rank = f.rank AND m.event_id = f.parent_op_id AND starts_with(m.name, 'aten::')
        ANTI JOIN gpu_ops AS g ON g.run = f.run AND g.rank = f.rank AND g.op_id = f.event_id
        WHERE
            f.name IN ('aten::fill_', 'aten::zero_', 'aten::normal_', 'aten::uniform_')
            AND lib.is_requested(runs, f.run) AND lib.is_requested(ranks, f.rank)
    ),
    _pairs AS MATERIALIZED (
        SELECT r.run, r.rank, r.pid, r.tid, r.event_id, r.ts AS root_ts, r.end_ts, r.device_ns, f.event_id AS fill_id, f.name, f.ts
        FROM _roots AS r
        ASOF JOIN _fills AS f ON f.run = r.run AND f.rank = r.rank AND f.pid = r.pid AND f.tid = r.tid AND r.ts >= f.end_ts
        WHERE coalesce(regexp_extract(f.input_dims, '^\[(\[[^\]]*\])', 1) = regexp_extract(r.input_dims, '^\[(\[[^\]]*\])', 1), true)
    ),
    _on_threads AS (
        SELECT c.run, c.rank, c.pid, c.tid, c.ts, c.event_id
        FROM cpu_ops AS c
        SEMI JOIN _pairs AS p ON p.run = c.run AND p.rank = c.rank AND p.tid = c.tid
    )
-- The operator with the latest start is the innermost of the operators that ran last.
SELECT p.run, p.rank, p.name, p.ts, p.end_ts - p.ts AS dur, p.device_ns, p.event_id
FROM _pairs AS p
ASOF JOIN _on_threads AS l ON l.run = p.run AND l.rank = p.rank AND l.pid = p.pid AND l.tid = p.tid AND p.root_ts > l.ts
WHERE l.event_id = p.fill_id
