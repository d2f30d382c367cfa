SELECT
    run,
    rank,
    name,
    side,
    call_count,
    host_self_us,
    host_total_us,
    device_self_us,
    device_total_us,
    device_self_pct
FROM us.operator_table
