-- A row an operator of a rank. Of all steps it is what the store keeps; of some it is computed.
{%- macro given(column, type, remove) -%}
  {%- set values = filter_values(column, remove_filter=remove) -%}
  {%- if values %}list_value{{ values | where_in }}::{{ type }}[]{% else %}NULL{% endif -%}
{%- endmacro %}
{%- set tags = filter_values('tag', remove_filter=True) %}
SELECT
    o.run,
    o.rank,
    o.name,
    o.side,
    o.call_count,
    o.host_self_ns / 1e3 AS host_self_us,
    o.host_total_ns / 1e3 AS host_total_us,
    o.device_self_ns / 1e3 AS device_self_us,
    o.device_total_ns / 1e3 AS device_total_us,
    o.device_self_pct
{%- if filter_values('step') %}
FROM operator_table(
    runs := {{ given('run', 'VARCHAR', False) }},
    ranks := {{ given('rank', 'INTEGER', False) }},
    steps := {{ given('step', 'BIGINT', True) }}
) AS o
{%- else %}
FROM operator_table AS o
{%- endif %}
{%- if tags %}
WHERE o.run IN (SELECT t.run FROM run_tags AS t WHERE t.tag || '=' || t.tag_value IN {{ tags | where_in }})
{%- endif %}
