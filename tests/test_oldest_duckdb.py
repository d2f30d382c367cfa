"""Tests that the oldest supported DuckDB opens a current catalog and returns the same answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hta_sql
from hta_sql.library.objects import load_library
from hta_sql.store.disk.manifest import CATALOG
from hta_sql.synthetic import JobSpec, write_job
from tests.cookbook.job import ingest_cookbook
from tests.cookbook.test_cookbook import QUERIES
from tests.cookbook.truth import ANSWERS

OLDEST = "duckdb==1.4.*"

ASK = '''
import hashlib, json, sys
import duckdb

NAMES = """
SELECT view_name, '' FROM duckdb_views() WHERE NOT internal AND schema_name = 'main'
UNION ALL
SELECT DISTINCT function_name, '()' FROM duckdb_functions()
WHERE
    function_type = 'table_macro' AND NOT internal AND schema_name = 'main'
    -- The view of a name calls these.
    AND function_name NOT IN (SELECT name || '_v' || version FROM analyses WHERE is_default)
ORDER BY ALL
"""


def answers(catalog):
    with duckdb.connect(catalog, read_only=True) as con:
        con.execute("SET enable_progress_bar = false")  # it would be among what is printed
        found = {}
        for name, call in con.execute(NAMES).fetchall():
            try:
                rows = sorted(map(repr, con.execute(f'FROM "{name}"{call}').fetchall()))
                digest = hashlib.sha256("\\n".join(rows).encode()).hexdigest()
                found[name + call] = [len(rows), digest]
            except duckdb.Error as error:
                found[name + call] = [str(error), ""]
        return found


print(json.dumps([duckdb.__version__, answers(sys.argv[1])]))
'''


ASK_QUERIES = """
import json, sys
import duckdb

with duckdb.connect(sys.argv[1], read_only=True) as con:
    queries = json.load(sys.stdin)
    print(json.dumps({name: con.execute(query).fetchall() for name, query in queries.items()}))
"""


Environment = dict[str, str]


@pytest.fixture(scope="module")
def oldest(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return an environment in which Python imports the oldest supported DuckDB."""
    folder = tmp_path_factory.mktemp("oldest")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [*pip, "--no-deps", "--no-compile", "--target", folder, OLDEST],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        pytest.skip(f"{OLDEST} cannot be installed here: {last[:200]}")
    return {**os.environ, "PYTHONPATH": str(folder)}


def asked(environment: Environment, catalog: Path) -> tuple[str, dict[str, list[object]]]:
    """Query all views and macros of a catalog.

    Returns:
        The DuckDB version, and name ─▶ row count and hash of the rows.
    """
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", ASK, str(catalog)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    version, answers = json.loads(done.stdout)
    return version, answers


@pytest.mark.slow(reason="large")
def test_every_view_and_macro(oldest: Environment, tmp_path: Path) -> None:
    """Each view and macro returns the same rows in both DuckDB versions."""
    write_job(tmp_path / "traces", JobSpec(ranks=2, steps=3, layers=2))
    store = tmp_path / "job.store"
    hta_sql.ingest(tmp_path / "traces", store, run="job").close()
    version, there = asked(oldest, store / CATALOG)
    assert version.startswith("1.4.")
    _, here = asked(dict(os.environ), store / CATALOG)
    assert there == here
    library = load_library()
    wanted = {table.name for table in library.tables} | {
        name
        for analysis in library.analyses
        for name in (analysis.base_name, f"{analysis.base_name}()")
    }
    assert wanted <= set(there)
    failed = {name: said for name, (said, digest) in there.items() if not digest}
    assert failed == {}
    assert sum(isinstance(rows, int) and rows > 0 for rows, _ in there.values()) > len(there) // 2


def test_the_cookbook(oldest: Environment, tmp_path: Path) -> None:
    """The oldest version returns the right answers for the cookbook."""
    catalog = ingest_cookbook(tmp_path) / CATALOG
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", ASK_QUERIES, str(catalog)],
        env=oldest,
        input=json.dumps(QUERIES),
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    answers = {
        int(number): list(map(tuple, rows)) for number, rows in json.loads(done.stdout).items()
    }
    assert answers == ANSWERS
