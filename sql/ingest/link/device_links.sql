-- Class and launch of each device activity and, through the launch, its operator, annotation, module and step.
--
-- kind is the hardware activity, class its purpose. The class comes from the profiler's collective metadata, then from
-- the category (copies, memsets and syncs need no name), then from the name rules; otherwise it is computation.
-- class_source records which of these sources determined the class, so results can report how much time depends on "no
-- rule matched the name".
CREATE OR REPLACE TABLE device_links AS
WITH
    classified AS (
        SELECT
            x.event_id,
            x.correlation,
            x.external_id,
            coalesce(x.collective, c.rule.collective) AS collective,
            c.rule.library AS library,
            c.rule.role AS role,
            CASE
                WHEN c.rule.class = 'sync' THEN 'sync'
                ELSE category_kind(x.cat)
            END AS kind,
            CASE
                WHEN x.collective IS NOT NULL THEN 'metadata'
                WHEN category_kind(x.cat) <> 'kernel' THEN 'category'
                WHEN c.rule IS NOT NULL THEN 'rule'
                ELSE 'default'
            END AS class_source,
            CASE
                WHEN x.collective IS NOT NULL THEN 'communication'
                WHEN category_kind(x.cat) = 'sync' THEN 'sync'
                WHEN category_kind(x.cat) <> 'kernel' THEN 'memory'
                ELSE coalesce(c.rule.class, 'computation')
            END AS class
        FROM staged_gpu_ops AS x
        LEFT JOIN kernel_classes AS c ON c.name = x.name
    )
SELECT
    x.event_id,
    x.collective,
    x.library,
    x.role,
    x.kind,
    x.class_source,
    x.class,
    l.call,
    coalesce(l.op_id, o.op_id) AS op_id,
    l.annotation_id,
    l.module_id,
    l.bwd_op_id,
    l.stack_id,
    coalesce(l.step, d.step) AS step
FROM classified AS x
LEFT JOIN launches AS l ON l.correlation = x.correlation AND l.part = part_of(x.event_id)
LEFT JOIN operators_by_external_id AS o
    ON o.external_id = x.external_id AND o.part = part_of(x.event_id) AND l.correlation IS NULL
LEFT JOIN device_steps AS d ON d.event_id = x.event_id
