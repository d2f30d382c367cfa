-- Peak bandwidth of a device's links to other devices of the same host, by device model: the sum over all links in
-- one direction, as stated by vendors.
--
-- A collective across hosts is limited by the network, which is not recorded in a trace.
CREATE OR REPLACE MACRO lib.link_peak(
    -- Device model as the profiler names it.
    device_name
) AS
-- Returns: DOUBLE [GB/s]  Bandwidth in one direction; NULL for an unknown model.
CASE
    WHEN regexp_matches(device_name, 'P100.*SXM') THEN 80.0
    WHEN regexp_matches(device_name, 'V100.*SXM|V100.*NVLINK|V100.*DGXS') THEN 150.0
    WHEN regexp_matches(device_name, 'V100.*PCIE') THEN 16.0
    -- Export versions with fewer links.
    WHEN regexp_matches(device_name, 'A800|H800') THEN 200.0
    WHEN regexp_matches(device_name, 'A100.*PCI') THEN 32.0
    WHEN regexp_matches(device_name, 'A100') THEN 300.0
    WHEN regexp_matches(device_name, 'H100.*PCI') THEN 64.0
    -- The pattern H20 also matches H200 and GH200.
    WHEN regexp_matches(device_name, 'H100|H20') THEN 450.0
    WHEN regexp_matches(device_name, 'B100|B200|B300') THEN 900.0
    WHEN regexp_matches(device_name, 'MI300X|MI308X|MI325X') THEN 448.0
    WHEN regexp_matches(device_name, 'MI350X|MI355X') THEN 537.6
    WHEN regexp_matches(device_name, 'MI210|MI250') THEN 150.0
END::DOUBLE
