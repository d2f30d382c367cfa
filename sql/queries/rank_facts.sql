-- Properties of each rank in a manifest, from its tables "ranks" and "devices", so that listing runs does not open
-- the ranks' files.
--
-- A trace contains the commit and torch version if its program recorded them with add_metadata_json.
WITH
    models AS (
        SELECT d.run, d.rank, d.name, count(*) AS device_count
        FROM described_devices AS d
        WHERE d.name IS NOT NULL
        GROUP BY ALL
    ),
    most AS (
        SELECT m.run, m.rank, arg_min(m.name, (-m.device_count, m.name)) AS device_name
        FROM models AS m
        GROUP BY ALL
    )
SELECT
    k.run,
    k.rank,
    k.world_size,
    k.first_rank,
    k.dur,
    k.host_name,
    k.backend,
    k.nccl_version,
    m.device_name,
    'torch ' || coalesce(k.metadata ->> 'torch_version', k.metadata ->> 'pytorch_version') AS framework,
    coalesce(k.metadata ->> 'git_sha', k.metadata ->> 'git_commit', k.metadata ->> 'commit') AS git_sha
FROM described_ranks AS k
LEFT JOIN most AS m ON m.run = k.run AND m.rank = k.rank
ORDER BY ALL
