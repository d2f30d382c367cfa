-- A row a step of a rank; the eight parts sum to step_us.
{%- set tags = filter_values('tag', remove_filter=True) %}
SELECT
    p.run,
    p.rank,
    p.step,
    p.step_ns / 1e3 AS step_us,
    p.compute_ns / 1e3 AS compute_us,
    p.exposed_transfer_ns / 1e3 AS exposed_transfer_us,
    p.exposed_unmatched_ns / 1e3 AS exposed_unmatched_us,
    p.exposed_wait_ns / 1e3 AS exposed_wait_us,
    p.exposed_memory_ns / 1e3 AS exposed_memory_us,
    p.idle_before_ns / 1e3 AS idle_before_us,
    p.idle_between_ns / 1e3 AS idle_between_us,
    p.idle_after_ns / 1e3 AS idle_after_us
FROM step_accounting AS p
{%- if tags %}
WHERE p.run IN (SELECT t.run FROM run_tags AS t WHERE t.tag || '=' || t.tag_value IN {{ tags | where_in }})
{%- endif %}
