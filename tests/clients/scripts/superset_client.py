"""A store in Apache Superset, through its REST API: ``python superset_client.py STORE [EXPORT.zip]``.

``pip install apache-superset duckdb-engine 'duckdb==1.4.*' rich cachetools flask-caching==2.3.1``

Starts Superset on loopback with metadata in a temporary folder, connects the store, makes datasets
whose column descriptions are our comments, asks in SQL Lab, makes charts and a dashboard, reads the
charts' data, and exports the dashboard. With ``KEEP=1`` it goes on running until it is interrupted.
"""

import io
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import requests
from superset_dashboard import CHARTS, DATASETS, Parameters, form_data, json_metadata, position

HERE = Path(__file__).parent
PLACEHOLDER = "/data/job.store/catalog.duckdb"
PASSWORD = secrets.token_urlsafe(12)


class Api:
    """Superset's REST API, logged in."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/api/v1/"
        self.session = requests.Session()
        login = {"username": "admin", "password": PASSWORD, "provider": "db", "refresh": True}
        token = self.post("security/login", **login)["access_token"]
        self.session.headers["Authorization"] = f"Bearer {token}"

    def post(self, path: str, **body: Any) -> Any:
        """Send a request; anything but success is an error."""
        response = self.session.post(self.url + path, json=body, timeout=120)
        if not response.ok:
            raise SystemExit(f"{path}: {response.status_code} {response.text[:1000]}")
        return response.json()

    def get(self, path: str) -> requests.Response:
        """Likewise for a question."""
        response = self.session.get(self.url + path, timeout=120)
        response.raise_for_status()
        return response


@contextmanager
def superset(home: str) -> Iterator[int]:
    """Start Superset on a free port of loopback; yields the port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = str(Path(sys.executable).with_name("superset"))
    env = {
        **os.environ,
        "FLASK_APP": "superset",
        "SUPERSET_SECRET_KEY": secrets.token_hex(32),
        "SUPERSET_HOME": home,
        "SUPERSET_CONFIG_PATH": str(HERE / "superset_config.py"),
    }
    user = [
        "--username",
        "admin",
        "--firstname",
        "a",
        "--lastname",
        "b",
        "--email",
        "a@example.com",
    ]
    with Path(home, "log.txt").open("w") as log:
        for command in (
            ["db", "upgrade"],
            ["fab", "create-admin", *user, "--password", PASSWORD],
            ["init"],
        ):
            subprocess.run([program, *command], env=env, stdout=log, stderr=log, check=True)
        server = subprocess.Popen(
            [program, "run", "-h", "127.0.0.1", "-p", str(port), "--with-threads"],
            env=env,
            stdout=log,
            stderr=log,
        )
        try:
            wait_for(port)
            yield port
        finally:
            server.terminate()
            server.wait()


def wait_for(port: int) -> None:
    """Wait until the server answers."""
    for _ in range(120):
        try:
            if requests.get(f"http://127.0.0.1:{port}/health", timeout=5).ok:
                return
        except requests.ConnectionError:
            time.sleep(1)
    raise SystemExit("Superset did not start")


def main(store: str, export: str | None = None) -> None:
    """Do everything that a user would do by hand."""
    catalog = Path(store, "catalog.duckdb").resolve()
    questions = json.loads((HERE / "questions.json").read_text())
    with tempfile.TemporaryDirectory() as home, superset(home) as port:
        api = Api(port)
        read_only = {"engine_params": {"connect_args": {"read_only": True}}}
        database = api.post(
            "database/",
            database_name="hta_sql",
            sqlalchemy_uri=f"duckdb:///{catalog}",
            expose_in_sqllab=True,
            extra=json.dumps(read_only),
        )["id"]
        datasets = {
            name: api.post("dataset/", database=database, schema=schema, table_name=name)["id"]
            for name, schema in DATASETS.items()
        }
        columns = api.get(f"dataset/{datasets['temporal_breakdown']}").json()["result"]["columns"]
        answers = {name: ask(api, database, query) for name, query in questions.items()}
        dashboard, charts = build_dashboard(api, datasets)
        data = {name: chart_rows(api, datasets[name], chart) for name, chart in charts.items()}
        zipped = api.get(f"dashboard/export/?q=!({dashboard})").content
        importable = without_own_names(zipped, str(catalog))
        import_again(api, importable)
        if export:
            Path(export).write_bytes(importable)
        versions = [
            f"{name} {version(name)}" for name in ("apache-superset", "duckdb-engine", "duckdb")
        ]
        described = {c["column_name"]: c["description"] for c in columns}
        print(
            json.dumps(
                {
                    "version": ", ".join(versions),
                    "answers": answers,
                    "described": described,
                    "charts": data,
                }
            ),
            flush=True,
        )
        while os.environ.get("KEEP"):
            place = f"http://127.0.0.1:{port}/superset/dashboard/{dashboard}/"
            print(f"{place} admin {PASSWORD}", file=sys.stderr, flush=True)
            time.sleep(600)


def ask(api: Api, database: int, query: str) -> list[list[Any]]:
    """One query in SQL Lab, which puts its own limit in the place of one that a query ends in."""
    done = api.post(
        "sqllab/execute/",
        database_id=database,
        sql=f"SELECT * FROM ({query}) AS answer",  # noqa: S608 - a file beside this one
        runAsync=False,
        queryLimit=1000,
    )
    return [list(row.values()) for row in done["data"]]


def build_dashboard(api: Api, datasets: dict[str, int]) -> tuple[int, dict[str, Parameters]]:
    """Make the charts and the page that holds them; returns its id and a chart a dataset."""
    names: dict[int, str] = {}
    for chart in CHARTS:
        parameters = form_data(chart, datasets[chart["dataset"]])
        made = api.post(
            "chart/",
            slice_name=chart["slice_name"],
            viz_type=chart["viz_type"],
            datasource_id=datasets[chart["dataset"]],
            datasource_type="table",
            params=json.dumps(parameters),
        )
        names[made["id"]] = chart["slice_name"]
    dashboard = api.post(
        "dashboard/",
        dashboard_title="GPU traces",
        slug="gpu-traces",
        published=True,
        position_json=json.dumps(position(names)),
        json_metadata=json_metadata(datasets["temporal_breakdown"]),
    )["id"]
    for number in names:
        response = api.session.put(
            f"{api.url}chart/{number}", json={"dashboards": [dashboard]}, timeout=60
        )
        response.raise_for_status()
    return dashboard, {chart["dataset"]: chart for chart in CHARTS}


def without_own_names(zipped: bytes, catalog: str) -> bytes:
    """Give an export a fixed top folder, and a path that its user will replace."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(zipped)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in sorted(old.namelist()):
            text = old.read(name).decode().replace(catalog, PLACEHOLDER)
            inside = name.partition("/")[2]
            new.writestr(zipfile.ZipInfo(f"hta_sql_dashboard/{inside}"), text)
    return buffer.getvalue()


def import_again(api: Api, zipped: bytes) -> None:
    """Hold that Superset takes what it gave."""
    response = api.session.post(
        f"{api.url}dashboard/import/",
        files={"formData": ("dashboard.zip", zipped, "application/zip")},
        data={"overwrite": "true"},
        timeout=120,
    )
    if not response.ok:
        raise SystemExit(f"dashboard/import: {response.status_code} {response.text[:1000]}")


def chart_rows(api: Api, dataset: int, chart: Parameters) -> list[Parameters]:
    """The rows that a chart draws."""
    metrics = chart.get("metrics") or [chart["metric"]]
    columns = [*chart.get("groupby", []), *([chart["x_axis"]] if "x_axis" in chart else [])]
    query = {"columns": columns, "metrics": metrics, "row_limit": 10_000, "filters": []}
    done = api.post(
        "chart/data",
        datasource={"id": dataset, "type": "table"},
        queries=[query],
        result_format="json",
        result_type="full",
    )
    rows: list[Parameters] = done["result"][0]["data"]
    return rows


if __name__ == "__main__":
    main(*sys.argv[1:])
