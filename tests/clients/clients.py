"""Clients that are tested on a store, with their requirements and scripts.

``python -m tests.clients.clients STORE`` runs all clients and updates the table in docs/clients.md.
Environments are created in the folder ``$HTA_SQL_CLIENTS``, or else in a temporary one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hta_sql
from docs.generate.page import with_reference
from tests.clients import dashboards

SCRIPTS = Path(__file__).parent / "scripts"
DOCS = Path(__file__).resolve().parents[2] / "docs"
DOCUMENT = DOCS / "clients.md"
BEGIN = "<!-- reference: made by python -m tests.clients.clients STORE; do not edit below -->"

Rows = list[list[Any]]


@dataclass(frozen=True)
class Client:
    """A client and the script that shows how to use it.

    Attributes:
        name: Name of the client.
        script: File name in ``scripts``.
        packages: Packages to install with pip. If empty, the client runs in the test environment.
        npm: Packages to install with npm.
        project: Folder in docs/ to copy into the client's environment, including its package.json.
        dashboard: Dashboard whose charts the client draws: superset or evidence.
    """

    name: str
    script: str
    packages: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    project: str = ""
    dashboard: str = ""

    @property
    def needs_npm(self) -> bool:
        """Whether the client runs in Node.js."""
        return bool(self.npm or self.project)


@dataclass(frozen=True)
class Answered:
    """The output of a client.

    Attributes:
        version: Versions of the client and its libraries.
        answers: Query name ─▶ rows.
        drawn: Name of a dashboard chart ─▶ rows.
    """

    version: str
    answers: dict[str, Rows]
    drawn: dict[str, dashboards.Rows]


LIGHT = (
    Client("DuckDB in Python, the version of the package", "duckdb_python.py"),
    Client("ADBC", "adbc_client.py"),
    Client("pyarrow and polars on the Parquet", "parquet_client.py"),
)
"""Clients that are part of every test run."""

HEAVY = (
    Client("DuckDB 1.4 in Python", "duckdb_python.py", ("duckdb==1.4.*",)),
    Client("DuckDB 1.5 in Python", "duckdb_python.py", ("duckdb==1.5.*",)),
    Client("DuckDB shell", "duckdb_shell.sh", ("duckdb-cli",)),
    Client("SQLAlchemy and pandas", "sqlalchemy_client.py", ("duckdb-sqlalchemy", "pandas")),
    Client("Node.js", "node_client.mjs", npm=("@duckdb/node-api",)),
    Client(
        "Apache Superset",
        "superset_client.py",
        (
            *("apache-superset==6.*", "duckdb-engine", "duckdb==1.4.*"),
            *("rich", "cachetools", "flask-caching==2.3.1"),
        ),
        dashboard="superset",
    ),
    Client("Evidence", "evidence_client.mjs", project="evidence", dashboard="evidence"),
)
"""Clients that need a separate environment; ``make test-clients`` runs them."""


def questions() -> dict[str, str]:
    """Return the queries that every client runs: name ─▶ SQL."""
    loaded: dict[str, str] = json.loads((SCRIPTS / "questions.json").read_text(encoding="utf-8"))
    return loaded


def expected(store: Path) -> dict[str, Rows]:
    """Return the answers that the Python API gives: name ─▶ rows."""
    with hta_sql.open(store) as opened:
        return {
            name: [list(row) for row in opened.sql(query).rows()]
            for name, query in questions().items()
        }


def ask(client: Client, store: Path, environments: Path) -> Answered:
    """Run a client's script and return its output."""
    command, folder = _command(client, environments)
    env = {**os.environ, "PYTHONPATH": ""}
    if shell := next((c for c in folder.glob("bin/duckdb") if client.script.endswith(".sh")), None):
        env["DUCKDB"] = str(shell)
    done = subprocess.run(
        [
            *command,
            str(SCRIPTS / client.script),
            str(store.resolve()),
            *_asked(client, store, folder),
        ],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    if done.returncode:
        raise RuntimeError(f"{client.name}: exit code {done.returncode}\n{done.stderr[-2000:]}")
    return _from_shell(done.stdout) if client.script.endswith(".sh") else _from_json(done.stdout)


def _asked(client: Client, store: Path, folder: Path) -> list[str]:
    """Write the chart queries for Superset to a file; return the client's additional arguments."""
    if client.dashboard != "superset":
        return []
    path = folder / "asked.json"
    with hta_sql.open(store) as opened:
        path.write_text(json.dumps(dashboards.asked(opened)), encoding="utf-8")
    return [str(path)]


def _command(client: Client, environments: Path) -> tuple[list[str], Path]:
    """Create a client's environment if it is missing; return its interpreter and its folder."""
    folder = environments / "".join(c if c.isalnum() else "_" for c in client.name)
    if client.needs_npm:
        if client.project:
            made = shutil.ignore_patterns(".evidence", "build", "node_modules")
            shutil.copytree(DOCS / client.project, folder, dirs_exist_ok=True, ignore=made)
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / "node_modules").exists():
            subprocess.run(["npm", "install", "--silent", *client.npm], cwd=folder, check=True)
        return ["node"], folder
    if not client.packages:
        environments.mkdir(parents=True, exist_ok=True)
        return [sys.executable], environments
    if not (folder / "ready").exists():
        venv.create(folder, clear=True, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *client.packages], check=True)
        (folder / "ready").touch()
    interpreter = "sh" if client.script.endswith(".sh") else str(folder / "bin" / "python")
    return [interpreter], folder


def _from_json(text: str) -> Answered:
    loaded = json.loads(text)
    return Answered(loaded["version"], loaded["answers"], loaded.get("drawn", {}))


def _from_shell(text: str) -> Answered:
    head, *lines = text.splitlines()
    parts = (line.split("\t", 1) for line in lines)
    answers = {name: [list(row.values()) for row in json.loads(rows)] for name, rows in parts}
    return Answered(f"DuckDB shell {head.split()[1]}", answers, {})


def differences(answers: dict[str, Rows], wanted: dict[str, Rows]) -> list[str]:
    """Return the names of queries whose rows differ from the rows of the Python API."""
    return [
        name
        for name, rows in answers.items()
        if [list(row) for row in rows] != wanted[name.partition(" (")[0]]
    ]


def to_draw(client: Client, store: Path) -> dict[str, dashboards.Rows]:
    """Return the rows that each chart of the client's dashboard must show."""
    of = {"superset": dashboards.drawn_by_superset, "evidence": dashboards.drawn_by_evidence}
    if not client.dashboard:
        return {}
    with hta_sql.open(store) as opened:
        return of[client.dashboard](opened)


def table_of(clients: Iterable[Client], store: Path, environments: Path) -> str:
    """Run all clients; return a table of their versions and whether their answers are right."""
    wanted = expected(store)
    heads = ("client", "versions", "questions", "charts and sources of its dashboard")
    lines = [f"| {' | '.join(heads)} | equal to the Python API |", "|---|---|---|---|---|"]
    for client in clients:
        said = ask(client, store, environments)
        unequal = differences(said.answers, wanted)
        unequal += dashboards.wrong(said.drawn, to_draw(client, store))
        verdict = f"no: {', '.join(unequal)}" if unequal else "yes"
        script = f"[{client.name}](../tests/clients/scripts/{client.script})"
        counts = f"{len(said.answers)} | {len(said.drawn) or ''}"
        lines.append(f"| {script} | {said.version} | {counts} | {verdict} |")
    return "\n".join(lines)


def main(store: str) -> None:
    """Run all clients on a store and update the table in docs/clients.md."""
    kept = os.environ.get("HTA_SQL_CLIENTS")
    environments = Path(kept or tempfile.mkdtemp())
    try:
        table = table_of((*LIGHT, *HEAVY), Path(store), environments)
    finally:
        if not kept:
            shutil.rmtree(environments)
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(with_reference(text, BEGIN, table), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
