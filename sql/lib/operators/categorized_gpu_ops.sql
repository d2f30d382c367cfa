-- Device activity in scope, with the launching operator and kind of work.
--
-- The category comes from the operator, or from the kernel name if the operator does not determine the category. For
-- communication, the category comes from the class.
CREATE OR REPLACE MACRO lib.categorized_gpu_ops(
    runs,
    ranks,
    steps,
    include_last_profiler_step
) AS TABLE
-- Columns:
--   run              VARCHAR      Run name.
--   rank             INTEGER      Rank of the process.
--   event_id         BIGINT       Position of the event in traceEvents.
--   step             BIGINT       Profiler step that launched the operation; NULL outside steps.
--   kind             VARCHAR      Kind of operation: kernel, memcpy or memset.
--   class            VARCHAR      Class of the operation: computation, communication or memory.
--   name             VARCHAR      Kernel name, or kind and direction of a copy.
--   device           BIGINT       Device number.
--   launch_id        BIGINT       event_id of the host call that launched the operation; NULL if not in the trace.
--   op_id            BIGINT       event_id of the innermost operator that encloses the launch; NULL: none.
--   operator_name    VARCHAR      Name of that operator, or of the operator from which a replayed kernel was captured, without overload; NULL: none.
--   label            VARCHAR      operator_name; without an operator, [graph replay] or [no operator].
--   match_method     VARCHAR      How the operator of the capture was found, as in graph_matches; NULL if the operator does not come from a capture.
--   captured_op_id   BIGINT       event_id of that operator in its capture; together with launch_id, it distinguishes calls.
--   category         VARCHAR      Kind of work: gemm, convolution, attention, …; other if no rule matches.
--   category_source  VARCHAR      Source of the category: class, operator, kernel (its name) or none.
--   kernel_category  VARCHAR      Category derived from the kernel's own name; NULL if no rule matches.
--   ts               BIGINT [ns]  Start, relative to the run's first event.
--   dur              BIGINT [ns]  Duration.
WITH
    _launched AS MATERIALIZED (
        SELECT
            g.run, g.rank, g.event_id, g.step, g.kind, g.class, g.name, g.device, g.launch_id, g.op_id,
            CASE
                WHEN c.name IS NOT NULL THEN lib.op_base_name(c.name)
                WHEN u.match_method IS NOT NULL THEN u.label
            END AS operator_name,
            u.label, u.match_method, u.captured_op_id, g.ts, g.dur
        FROM lib.launched_gpu_ops(runs, ranks, steps, include_last_profiler_step) AS g
        LEFT JOIN cpu_ops AS c ON c.run = g.run AND c.rank = g.rank AND c.event_id = g.op_id
        LEFT JOIN lib.unowned_gpu_ops(runs, ranks) AS u ON u.run = g.run AND u.rank = g.rank AND u.event_id = g.event_id
    ),
    _named AS (
        SELECT DISTINCT 'operator' AS side, l.operator_name AS name FROM _launched AS l
        UNION ALL
        SELECT DISTINCT 'kernel' AS side, l.name FROM _launched AS l
    ),
    _categories AS MATERIALIZED (
        SELECT k.side, k.name, k.category FROM lib.named_categories('_named') AS k
    )
SELECT
    l.run AS run, l.rank AS rank, l.event_id AS event_id, l.step AS step, l.kind AS kind, l.class AS class, l.name AS name,
    l.device AS device, l.launch_id AS launch_id, l.op_id AS op_id, l.operator_name AS operator_name,
    coalesce(l.operator_name, l.label, '[no operator]') AS label, l.match_method AS match_method, l.captured_op_id AS captured_op_id,
    CASE WHEN l.class = 'communication' THEN 'communication' ELSE coalesce(o.category, k.category, 'other') END AS category,
    CASE
        WHEN l.class = 'communication' THEN 'class'
        WHEN o.category IS NOT NULL THEN 'operator'
        WHEN k.category IS NOT NULL THEN 'kernel'
        ELSE 'none'
    END AS category_source,
    k.category AS kernel_category, l.ts AS ts, l.dur AS dur
FROM _launched AS l
LEFT JOIN _categories AS o ON o.side = 'operator' AND o.name = l.operator_name
LEFT JOIN _categories AS k ON k.side = 'kernel' AND k.name = l.name
