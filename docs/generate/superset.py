"""Write the dashboard for Apache Superset: ``python -m docs.generate.superset FILE``.

The zip is the input of *Import dashboard*: a database, the datasets of docs/superset/datasets, and
the charts and the page described by :mod:`docs.generate.superset_charts`. Superset reads YAML; the
files are written as JSON, which is valid YAML.
"""

from __future__ import annotations

import io
import json
import re
import sys
import uuid
import zipfile
from pathlib import Path
from typing import Any

from docs.generate.superset_charts import (
    CHARTS,
    FILTERS,
    LABEL_COLORS,
    Parameters,
    form_data,
    query,
)
from hta_sql.library.declared import Column
from hta_sql.library.objects import load_library

DATASETS = Path(__file__).parents[1] / "superset" / "datasets"
PLACEHOLDER = "/data/job.store/catalog.duckdb"
TOP = "hta_sql_dashboard"
VERSION = "1.0.0"
TITLE = "GPU traces"
CHOICES = "choices"
HEIGHT = 50

__all__ = ["CHARTS", "FILTERS", "content", "main", "query", "selected", "zipped"]

_ITEM = re.compile(r"^    (?:.* AS |\w+\.)(?P<name>\w+),?$", re.MULTILINE)


def identity(*names: str) -> str:
    """Return a stable id for an object, so that an import replaces the existing object."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(("hta_sql", *names))))


def dataset_sql(name: str) -> str:
    """Return the query of a dataset: SQL with Jinja code that inserts the selected filters."""
    return (DATASETS / f"{name}.sql").read_text(encoding="utf-8")


def dataset_names() -> list[str]:
    """List the datasets; each is named after an analysis, except those that list filter values."""
    return sorted(path.stem for path in DATASETS.glob("*.sql"))


def selected(name: str) -> list[str]:
    """Return the columns of a dataset, read from its SELECT list of one column per line."""
    listed = dataset_sql(name).split("\nSELECT\n")[1]
    return [match["name"] for match in _ITEM.finditer(re.split(r"\n(?:FROM|\{)", listed)[0])]


def _column(name: str, known: dict[str, Column]) -> Parameters:
    """Describe a column; times that the analysis returns in ns are in µs here."""
    about = known.get(name) or known.get(re.sub(r"_us$", "_ns", name))
    kind = "DOUBLE" if name.endswith("_us") else about.type if about else "VARCHAR"
    unit = "us" if name.endswith("_us") else about.unit if about else None
    words = about.doc if about else ""
    return {
        "column_name": name,
        "type": {"rank": "INTEGER", "step": "BIGINT", "level_order": "INTEGER"}.get(name, kind),
        "description": f"{words} [{unit}]".strip() if unit else words,
        "is_dttm": False,
        "is_active": True,
        "groupby": True,
        "filterable": True,
    }


def dataset(name: str) -> Parameters:
    """Describe a dataset as Superset stores it."""
    about = None if name == CHOICES else load_library().find(name)
    known = {column.name: column for column in about.columns} if about else {}
    return {
        "table_name": name,
        "description": about.summary if about else "What the filters offer",
        "sql": dataset_sql(name),
        "filter_select_enabled": True,
        "uuid": identity("dataset", name),
        "database_uuid": identity("database"),
        "columns": [_column(column, known) for column in selected(name)],
        "metrics": [],
        "version": VERSION,
    }


def database() -> Parameters:
    """Describe a read-only connection; the user replaces its path after the import."""
    return {
        "database_name": "hta_sql",
        "sqlalchemy_uri": f"duckdb:///{PLACEHOLDER}",
        "expose_in_sqllab": True,
        "extra": {"engine_params": {"connect_args": {"read_only": True}}},
        "uuid": identity("database"),
        "version": VERSION,
    }


def chart(about: Parameters) -> Parameters:
    """Describe a chart and link it to its dataset."""
    return {
        "slice_name": about["slice_name"],
        "viz_type": about["viz_type"],
        "params": form_data(about),
        "uuid": identity("chart", about["slice_name"]),
        "dataset_uuid": identity("dataset", about["dataset"]),
        "version": VERSION,
    }


def position() -> Parameters:
    """Describe the layout: rows of charts side by side."""
    rows = sorted({about["row"] for about in CHARTS})
    places: Parameters = {
        "DASHBOARD_VERSION_KEY": "v2",
        "ROOT_ID": {"type": "ROOT", "id": "ROOT_ID", "children": ["GRID_ID"]},
        "GRID_ID": {
            "type": "GRID",
            "id": "GRID_ID",
            "children": [f"ROW-{row}" for row in rows],
            "parents": ["ROOT_ID"],
        },
    }
    for row in rows:
        inside = [(at, c) for at, c in enumerate(CHARTS, start=1) if c["row"] == row]
        places[f"ROW-{row}"] = {
            "type": "ROW",
            "id": f"ROW-{row}",
            "children": [f"CHART-{at}" for at, _ in inside],
            "parents": ["ROOT_ID", "GRID_ID"],
            "meta": {"background": "BACKGROUND_TRANSPARENT"},
        }
        for at, about in inside:
            places[f"CHART-{at}"] = {
                "type": "CHART",
                "id": f"CHART-{at}",
                "children": [],
                "parents": ["ROOT_ID", "GRID_ID", f"ROW-{row}"],
                "meta": {
                    "chartId": at,
                    "uuid": identity("chart", about["slice_name"]),
                    "sliceName": about["slice_name"],
                    "width": about.get("width", 12 // len(inside)),
                    "height": about.get("height", HEIGHT),
                },
            }
    return places


def native_filter(about: Parameters) -> Parameters:
    """Describe a filter above the charts; charts whose dataset ignores the filter are excluded."""
    name = about["name"]
    out = [at for at, c in enumerate(CHARTS, start=1) if c["dataset"] not in about["takes"]]
    return {
        "id": f"NATIVE_FILTER-{name}",
        "name": about["title"],
        "type": "NATIVE_FILTER",
        "filterType": "filter_select",
        "targets": [
            {"datasetUuid": identity("dataset", CHOICES), "column": {"name": name}},
        ],
        "controlValues": {
            "multiSelect": about["many"],
            "defaultToFirstItem": about.get("first", False),
            "enableEmptyFilter": about.get("first", False),
            "inverseSelection": False,
            "searchAllOptions": False,
        },
        # If the first item is selected by default, charts wait for it.
        "requiredFirst": about.get("first", False),
        "defaultDataMask": {"extraFormData": {}, "filterState": {}, "ownState": {}},
        "cascadeParentIds": [f"NATIVE_FILTER-{parent}" for parent in about.get("within", ())],
        "scope": {"rootPath": ["ROOT_ID"], "excluded": out},
    }


def dashboard() -> Parameters:
    """Describe the page and its filters."""
    return {
        "dashboard_title": TITLE,
        "slug": "gpu-traces",
        "published": True,
        "uuid": identity("dashboard"),
        "position": position(),
        "metadata": {
            "label_colors": LABEL_COLORS,
            "native_filter_configuration": [native_filter(about) for about in FILTERS],
            "cross_filters_enabled": False,
        },
        "version": VERSION,
    }


def files() -> dict[str, Parameters]:
    """Return the content of every file in the zip, by path."""
    numbered = enumerate(CHARTS, start=1)
    return {
        "metadata.yaml": {
            "version": VERSION,
            "type": "Dashboard",
            "timestamp": "2026-01-01T00:00:00+00:00",
        },
        "databases/hta_sql.yaml": database(),
        **{f"datasets/hta_sql/{name}.yaml": dataset(name) for name in dataset_names()},
        **{f"charts/{at}.yaml": chart(about) for at, about in numbered},
        "dashboards/gpu_traces.yaml": dashboard(),
    }


def zipped() -> bytes:
    """Return the zip, whose bytes are identical on every call."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as into:
        for name, content in sorted(files().items()):
            entry = zipfile.ZipInfo(f"{TOP}/{name}")
            entry.compress_type = zipfile.ZIP_DEFLATED
            into.writestr(entry, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return buffer.getvalue()


def content(packed: bytes) -> dict[str, Any]:
    """Return the files in a zip, for a comparison that does not depend on zlib's compression."""
    with zipfile.ZipFile(io.BytesIO(packed)) as opened:
        return {name: json.loads(opened.read(name)) for name in opened.namelist()}


def main(paths: list[str]) -> None:
    """Write the zip."""
    for path in paths:
        Path(path).write_bytes(zipped())


if __name__ == "__main__":
    main(sys.argv[1:])
