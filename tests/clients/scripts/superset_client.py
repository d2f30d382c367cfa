"""Query a store through Superset's REST API: ``python superset_client.py STORE [ASKED.json]``.

Requires
``pip install apache-superset duckdb-engine 'duckdb==1.4.*' rich cachetools flask-caching==2.3.1``.

The script starts Superset on loopback with its metadata in a temporary folder, imports
docs/superset and connects it to the store. It then runs the test queries in SQL Lab and the queries
of the charts. ASKED.json has a dataset and a query for each chart name. With ``KEEP=1``, Superset
runs until it is interrupted.
"""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import requests

HERE = Path(__file__).parent
DASHBOARD = HERE.parents[2] / "docs" / "superset" / "hta_sql_dashboard.zip"
PASSWORD = secrets.token_urlsafe(12)


class Api:
    """Superset's REST API with a logged-in session."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/api/v1/"
        self.session = requests.Session()
        login = {"username": "admin", "password": PASSWORD, "provider": "db", "refresh": True}
        token = self.send("POST", "security/login", json=login)["access_token"]
        self.session.headers["Authorization"] = f"Bearer {token}"

    def send(self, method: str, path: str, **more: Any) -> Any:
        """Send a request and return the JSON response; exit if the request fails."""
        response = self.session.request(method, self.url + path, timeout=120, **more)
        if not response.ok:
            raise SystemExit(f"{path}: {response.status_code} {response.text[:2000]}")
        return response.json()


@contextmanager
def superset(home: str) -> Iterator[int]:
    """Start Superset on a free loopback port; yield the port."""
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
    names = ("--username", "admin", "--firstname", "a", "--lastname", "b")
    user = [*names, "--email", "a@example.com", "--password", PASSWORD]
    with Path(home, "log.txt").open("w") as log:
        for command in (["db", "upgrade"], ["fab", "create-admin", *user], ["init"]):
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


def import_dashboard(api: Api, catalog: Path) -> int:
    """Import the dashboard, connect its database to the catalog, and return the database id."""
    packed = ("dashboard.zip", DASHBOARD.read_bytes(), "application/zip")
    api.send("POST", "dashboard/import/", files={"formData": packed}, data={"overwrite": "true"})
    (found,) = api.send("GET", "database/")["result"]
    path = {"sqlalchemy_uri": f"duckdb:///{catalog}"}
    api.send("PUT", f"database/{found['id']}", json=path)
    return int(found["id"])


def ask(api: Api, database: int, query: str) -> list[list[Any]]:
    """Run a query in SQL Lab, as a subquery because SQL Lab replaces a LIMIT at the end."""
    asked = {
        "database_id": database,
        "sql": f"SELECT * FROM ({query}) AS answer",  # noqa: S608 - queries from questions.json
        "runAsync": False,
        "queryLimit": 1000,
    }
    done = api.send("POST", "sqllab/execute/", json=asked)
    return [list(row.values()) for row in done["data"]]


def chart_rows(api: Api, dataset: int, query: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows that a chart shows."""
    asked = {
        "datasource": {"id": dataset, "type": "table"},
        "queries": [query],
        "result_format": "json",
        "result_type": "full",
    }
    rows: list[dict[str, Any]] = api.send("POST", "chart/data", json=asked)["result"][0]["data"]
    return rows


def main(store: str, asked: str | None = None) -> None:
    """Start Superset, run all queries and print their rows as JSON."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops the server, too
    catalog = Path(store, "catalog.duckdb").resolve()
    questions = json.loads((HERE / "questions.json").read_text())
    charts = json.loads(Path(asked).read_text()) if asked else {}
    with tempfile.TemporaryDirectory() as home, superset(home) as port:
        api = Api(port)
        database = import_dashboard(api, catalog)
        listed = api.send("GET", "dataset/?q=(page_size:100)")["result"]
        datasets = {one["table_name"]: one["id"] for one in listed}
        answers = {
            "version": ", ".join(
                f"{name} {version(name)}" for name in ("apache-superset", "duckdb-engine", "duckdb")
            ),
            "answers": {name: ask(api, database, query) for name, query in questions.items()},
            "drawn": {
                name: chart_rows(api, datasets[chart["dataset"]], chart["query"])
                for name, chart in charts.items()
            },
        }
        print(json.dumps(answers), flush=True)
        while os.environ.get("KEEP"):
            place = f"http://127.0.0.1:{port}/superset/dashboard/gpu-traces/"
            print(f"{place} admin {PASSWORD}", file=sys.stderr, flush=True)
            time.sleep(600)


if __name__ == "__main__":
    main(*sys.argv[1:])
