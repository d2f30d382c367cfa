"""Read the Parquet of a store without a catalog, in pyarrow and polars: ``python parquet_client.py STORE``.

Requires ``pip install pyarrow polars``. The manifest lists the files of the store.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import polars as pl
import pyarrow.dataset as ds

store = Path(sys.argv[1])
manifest = json.loads((store / "manifest.json").read_text())
files = [
    str(store / entry["files"]["gpu_ops"]["path"])
    for entry in manifest["entries"]
    if "gpu_ops" in entry["files"]
]
dataset = ds.dataset(files, partitioning="hive", partition_base_dir=str(store / "tables/gpu_ops"))
table = dataset.to_table(columns=["run", "class", "dur"])
grouped = table.group_by(["run", "class"]).aggregate([("dur", "count"), ("dur", "sum")])
by_arrow = sorted(tuple(row.values()) for row in grouped.to_pylist())

frame = (
    pl.scan_parquet(files, hive_partitioning=True)
    .group_by("run", "class")
    .agg(pl.len().cast(pl.Int64).alias("ops"), pl.col("dur").sum())
    .sort("run", "class")
)
by_polars = frame.collect().rows()
versions = ", ".join(f"{name} {version(name)}" for name in ("pyarrow", "polars"))
answers = {"time_by_class": by_arrow, "time_by_class (polars)": by_polars}
print(json.dumps({"version": versions, "answers": answers}))
