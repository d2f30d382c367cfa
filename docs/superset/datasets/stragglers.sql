-- A row a rank; a verdict needs all steps, so there is no choice of steps.
{%- set tags = filter_values('tag', remove_filter=True) %}
SELECT
    s.run,
    s.rank,
    s.verdict,
    s.is_straggler,
    s.cause,
    s.message,
    s.cost_ns / 1e3 AS cost_us,
    s.cost_pct,
    s.wait_ns / 1e3 AS wait_us,
    s.wait_caused_ns / 1e3 AS wait_caused_us,
    s.last_arrival_pct,
    s.verdict_reason
FROM stragglers AS s
{%- if tags %}
WHERE s.run IN (SELECT t.run FROM run_tags AS t WHERE t.tag || '=' || t.tag_value IN {{ tags | where_in }})
{%- endif %}
