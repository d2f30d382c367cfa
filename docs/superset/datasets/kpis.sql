-- A row a run, side by side: of all its ranks and steps, as the store keeps it.
{%- set tags = filter_values('tag', remove_filter=True) %}
SELECT
    k.run,
    k.rank_count,
    k.step_count,
    k.device_name,
    k.step_ns / 1e3 AS step_us,
    k.utilization_pct,
    k.compute_pct,
    k.exposed_communication_pct,
    k.wait_pct,
    k.idle_pct,
    k.launch_bound_pct,
    k.mfu_pct,
    k.peak_memory_pct
FROM kpis AS k
{%- if tags %}
WHERE k.run IN (SELECT t.run FROM run_tags AS t WHERE t.tag || '=' || t.tag_value IN {{ tags | where_in }})
{%- endif %}
