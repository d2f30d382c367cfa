-- What the links of a device to its neighbors in the same host can send at most, by the device's model:
-- the sum over its links in one direction, as the makers state it.
--
-- A collective that leaves the host is bounded by the network, which a trace does not know.
--
-- Status: stable
-- Since: 0.1
CREATE OR REPLACE MACRO lib.link_peak(
    -- Model of the device, as the profiler names it.
    device_name
) AS
-- Returns: DOUBLE [GB/s]  Bandwidth in one direction; NULL for a model that is not in the list.
CASE
    WHEN regexp_matches(device_name, 'P100.*SXM') THEN 80.0
    WHEN regexp_matches(device_name, 'V100.*SXM|V100.*NVLINK|V100.*DGXS') THEN 150.0
    WHEN regexp_matches(device_name, 'V100.*PCIE') THEN 16.0
    -- As exported, with fewer links.
    WHEN regexp_matches(device_name, 'A800|H800') THEN 200.0
    WHEN regexp_matches(device_name, 'A100.*PCI') THEN 32.0
    WHEN regexp_matches(device_name, 'A100') THEN 300.0
    WHEN regexp_matches(device_name, 'H100.*PCI') THEN 64.0
    -- H20 stands in H200 and GH200.
    WHEN regexp_matches(device_name, 'H100|H20') THEN 450.0
    WHEN regexp_matches(device_name, 'B100|B200|B300') THEN 900.0
    WHEN regexp_matches(device_name, 'MI300X|MI308X|MI325X') THEN 448.0
    WHEN regexp_matches(device_name, 'MI350X|MI355X') THEN 537.6
    WHEN regexp_matches(device_name, 'MI210|MI250') THEN 150.0
END::DOUBLE
