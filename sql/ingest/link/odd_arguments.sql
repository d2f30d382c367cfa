-- Argument values that do not fit the type of their column: the column is NULL, and event_args has the value.
CREATE OR REPLACE TABLE odd_arguments AS
WITH
    odd_events AS (
        SELECT c.event_id, c.args, c.odd_arguments FROM staged_cpu_ops AS c WHERE c.odd_arguments IS NOT NULL
        UNION ALL SELECT r.event_id, r.args, r.odd_arguments FROM staged_runtime_calls AS r WHERE r.odd_arguments IS NOT NULL
        UNION ALL SELECT g.event_id, g.args, g.odd_arguments FROM staged_gpu_ops AS g WHERE g.odd_arguments IS NOT NULL
        UNION ALL SELECT a.event_id, a.args, a.odd_arguments FROM staged_annotations AS a WHERE a.odd_arguments IS NOT NULL
        UNION ALL SELECT p.event_id, p.args, p.odd_arguments FROM staged_python_calls AS p WHERE p.odd_arguments IS NOT NULL
        UNION ALL SELECT m.event_id, m.args, m.odd_arguments FROM staged_memory_events AS m WHERE m.odd_arguments IS NOT NULL
    ),
    named AS (
        SELECT o.event_id, o.args, unnest(o.odd_arguments) AS argument FROM odd_events AS o
    )
SELECT
    n.event_id,
    n.argument,
    -- A JSON pointer, because names contain spaces and dots.
    left(n.args ->> ('/' || replace(replace(n.argument, '~', '~0'), '/', '~1')), 80) AS excerpt
FROM named AS n
