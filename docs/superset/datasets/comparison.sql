-- What changed from control_run to test_run, the same ranks and steps of both; of nothing chosen the first two runs.
{%- macro given(column, type) -%}
  {%- set values = filter_values(column, remove_filter=True) -%}
  {%- if values %}list_value{{ values | where_in }}::{{ type }}[]{% else %}NULL{% endif -%}
{%- endmacro %}
{%- set control = filter_values('control_run', remove_filter=True) %}
{%- set test = filter_values('test_run', remove_filter=True) %}
SELECT
    c.control_run,
    c.test_run,
    c.level,
    list_position(['step', 'part', 'row'], c.level) AS level_order,
    c.part,
    c.subject,
    c.control_ns / 1e3 AS control_us,
    c.test_ns / 1e3 AS test_us,
    c.diff_ns / 1e3 AS diff_us,
    abs(c.diff_ns) / 1e3 AS abs_diff_us,
    c.diff_pct,
    c.noise_ns / 1e3 AS noise_us,
    c.verdict,
    c.test_count - c.control_count AS count_diff
FROM comparison(
    runs := {% if control and test %}list_value{{ (control[:1] + test[:1]) | where_in }}{% else %}NULL{% endif %},
    ranks := {{ given('rank', 'INTEGER') }},
    steps := {{ given('step', 'BIGINT') }}
) AS c
