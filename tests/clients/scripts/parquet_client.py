"""Read a store's Parquet files with pyarrow and polars: ``python parquet_client.py STORE``.

Requires ``pip install pyarrow polars``. The manifest lists the files of each rank. Ranks may share
a file. A file may still have old rows of a rank that was ingested again and has a new file.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

store = Path(sys.argv[1])
manifest = json.loads((store / "manifest.json").read_text())
columns, base = ["run", "class", "dur"], str(store / "tables/gpu_ops")
ranks: dict[str, list[int]] = {}
for entry in manifest["entries"]:
    if file := entry["files"].get("gpu_ops"):
        ranks.setdefault(str(store / file["path"]), []).append(entry["rank"])

table = pa.concat_tables(
    ds.dataset([path], partitioning="hive", partition_base_dir=base).to_table(
        columns=columns, filter=ds.field("rank").isin(of_file)
    )
    for path, of_file in ranks.items()
)
grouped = table.group_by(["run", "class"]).aggregate([("dur", "count"), ("dur", "sum")])
by_arrow = sorted(tuple(row.values()) for row in grouped.to_pylist())

frame = (
    pl.concat(
        pl.scan_parquet(path, hive_partitioning=True)
        .filter(pl.col("rank").is_in(of_file))
        .select(columns)
        for path, of_file in ranks.items()
    )
    .group_by("run", "class")
    .agg(pl.len().cast(pl.Int64).alias("ops"), pl.col("dur").sum())
    .sort("run", "class")
)
by_polars = frame.collect().rows()
versions = ", ".join(f"{name} {version(name)}" for name in ("pyarrow", "polars"))
answers = {"time_by_class": by_arrow, "time_by_class (polars)": by_polars}
print(json.dumps({"version": versions, "answers": answers}))
