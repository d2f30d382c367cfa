"""Tests of the package structure: imports, SQL and the contents of the wheel."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import zipfile
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hta_sql.library.sql_files import sql_root
from tests.sql_rules.literals import literal_problems

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "hta_sql"
MODULES = sorted(PACKAGE.rglob("*.py"))

MAX_LINES = 400

ROOMS = (
    *("errors", "_version", "text", "machine", "exhausted", "closing", "templates"),
    *(
        "synthetic",
        "library",
        "traces",
        "results",
        "replay",
        "store",
        "ingestion",
        "api",
    ),
    *(
        "charts",
        "critical_path",
        "report",
        "exports",
        "comparison",
        "overlay",
        "authoring",
        "serve",
    ),
    *("hta", "torch", "trace_analysis", "trace_diff", "__init__", "cli", "__main__"),
)
"""Packages in the order of the data flow; each imports only packages before it."""

STORE_FOLDERS = ("disk", "catalog", "query", "maintenance")
"""Subpackages of the store; each imports only those before it."""

BELOW_INGESTION = ("hta_sql.store.disk", "hta_sql.store.catalog")
"""Subpackages of the store that ingestion may import; it needs neither queries nor maintenance."""

PRINTING_ALLOWED: dict[str, str] = {}


def name_of(path: Path) -> str:
    """Return the dotted name of a module, such as hta_sql.ingestion.rank."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def tree_of(path: Path) -> ast.Module:
    """Parse a module into a syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield each import in a module as (module, name); the name is empty for ``import a``."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)


def within(name: str, packages: tuple[str, ...]) -> bool:
    """Return whether a module is one of the packages or inside one of them."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def imported_modules(path: Path) -> set[str]:
    """Return the modules that a file may import.

    For ``from a import b``, these are a and a.b, whether or not a.b is a module.
    """
    found = set()
    for module, name in imports_of(path):
        found.add(module)
        if name and within(module, ("hta_sql",)):
            found.add(f"{module}.{name}")
    return found


def test_the_rules_see_the_package() -> None:
    """The import rules see modules and imports; otherwise, the other tests would pass vacuously."""
    assert len(MODULES) > 20
    assert "hta_sql.ingestion.rank" in map(name_of, MODULES)
    assert "hta_sql.library.sql_files" in imported_modules(PACKAGE / "ingestion" / "rank.py")
    assert len(set(arrows())) > 100


def arrows() -> Iterator[tuple[str, str]]:
    """Yield each import between packages as (importing module, imported module)."""
    known = {name_of(path) for path in MODULES}
    for path in MODULES:
        for module, name in imports_of(path):
            if not within(module, ("hta_sql",)):
                continue
            target = f"{module}.{name}" if f"{module}.{name}" in known else module
            if room_of(name_of(path)) != room_of(target):
                yield short(name_of(path)), short(target)


def short(name: str) -> str:
    """Return the name of a module without the prefix ``hta_sql.``."""
    return name.partition(".")[2] or "__init__"


def room_of(name: str) -> str:
    """Return the top-level package or module that contains a module."""
    return short(name).partition(".")[0]


def test_every_room_is_on_the_list() -> None:
    """The list of packages is complete, and each package on it exists."""
    assert sorted({room_of(name_of(path)) for path in MODULES}) == sorted(ROOMS)


def test_how_it_works_lists_the_folders_in_that_order() -> None:
    """docs/how_it_works.md lists all packages, in import order."""
    text = (ROOT / "docs" / "how_it_works.md").read_text(encoding="utf-8")
    table = text.split("| folder or module | responsible for |")[1].split("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    named = [name for cell in cells for name in re.findall(r"`(\w+)/?`", cell)]
    assert named == [room for room in ROOMS if room not in {"__init__", "__main__"}]


def test_data_flows_one_way() -> None:
    """A package imports only packages that come before it in the list."""
    place = {room: at for at, room in enumerate(ROOMS)}
    back = {
        (importing, imported)
        for importing, imported in arrows()
        if place[imported.partition(".")[0]] > place[importing.partition(".")[0]]
    }
    assert back == set()


def store_arrows() -> Iterator[tuple[str, str]]:
    """Yield each import between subpackages of the store as (importing, imported)."""
    for path in (PACKAGE / "store").rglob("*.py"):
        folder = path.relative_to(PACKAGE / "store").parts[0]
        for module in imported_modules(path):
            match module.split("."):
                case ["hta_sql", "store", target, *_] if target in STORE_FOLDERS:
                    if target != folder:
                        yield folder, target


def test_every_module_of_the_store_stands_in_one_of_its_folders() -> None:
    """The store package has no modules of its own apart from __init__.py."""
    store = PACKAGE / "store"
    assert [path.name for path in store.glob("*.py")] == ["__init__.py"]
    assert sorted(path.parent.name for path in store.glob("*/__init__.py")) == sorted(STORE_FOLDERS)


def test_folders_of_the_store_import_only_lower_ones() -> None:
    """Folders import only lower ones: disk is lowest, then catalog, query and maintenance."""
    floor = {folder: at for at, folder in enumerate(STORE_FOLDERS)}
    found = set(store_arrows())
    assert len(found) >= 5
    assert {(up, down) for up, down in found if floor[up] < floor[down]} == set()


def test_ingestion_imports_only_files_and_catalog_of_the_store() -> None:
    """Ingestion imports only the disk and catalog parts of the store."""
    found = {
        (name_of(path), module)
        for path in (PACKAGE / "ingestion").rglob("*.py")
        for module in imported_modules(path)
        if within(module, ("hta_sql.store",)) and module.count(".") > 2
    }
    assert len(found) > 20
    assert {pair for pair in found if not within(pair[1], BELOW_INGESTION)} == set()


def test_no_module_imports_itself_by_way_of_others() -> None:
    """There are no import cycles, not even within a package or for type imports."""
    known = {name_of(path): path for path in MODULES}
    graph = {
        name: {
            target
            for module, imported in imports_of(path)
            if (target := f"{module}.{imported}" if f"{module}.{imported}" in known else module)
            in known
            and target != name
        }
        for name, path in known.items()
    }
    assert sum(map(len, graph.values())) > 400
    TopologicalSorter(graph).prepare()


def test_modules_stay_small() -> None:
    """Modules have at most 400 lines."""
    lines = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > MAX_LINES} == {}


def test_sql_is_in_sql_files() -> None:
    """Python contains no SQL, except in the modules that assemble names and change settings."""
    assert list(literal_problems()) == []


def test_the_sql_rule_finds_what_it_looks_for(tmp_path: Path) -> None:
    """The rule finds statements, complete or assembled, but no messages and docstrings."""
    lines = [
        '"""SELECT 1"""',
        'a = "SELECT 1"',
        'a = f"""\\n    INSERT INTO t VALUES ({value})"""',
        'a = "SELECT * FROM " + name',
        'a = f"FROM {name}"',
        'a = f"{count} rows FROM {name}"',
        'a = "Set the name from SELECT"',
        'a = "SELECT"',
        'a = "COMMIT"',
        'a = "set {}".format(name)',
        'a = "SET threads = 1"',
    ]
    (tmp_path / "module.py").write_text("\n".join(lines), encoding="utf-8")
    found = [int(problem.split(":")[1]) for problem in literal_problems(tmp_path)]
    assert found == [2, 3, 4, 5, 9, 11]


def test_every_query_of_python_exists_and_is_used() -> None:
    """Each statement in sql/queries has a caller, and each caller names a statement."""
    called = {
        tuple(argument.value for argument in node.args if isinstance(argument, ast.Constant))
        for path in MODULES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "query_sql"
    }
    existing = {
        (path.stem, name) if name else (path.stem,)
        for path in (sql_root() / "queries").glob("*.sql")
        for name in re.findall(r"(?m)^-- name: (\w+)$", path.read_text(encoding="utf-8")) or [""]
    }
    side_files = {("execution_trace_nodes",), ("memory_timeline",)}  # named by their readers
    assert called - {()} == existing - side_files


def test_nothing_prints() -> None:
    """Only the command line interface may write to stdout."""
    calls = {
        f"{name_of(path)}:{node.lineno}"
        for path in MODULES
        if name_of(path) not in PRINTING_ALLOWED
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    }
    assert calls == set()


@pytest.mark.slow(reason="processes")
def test_the_wheel_holds_all_of_sql(tmp_path: Path) -> None:
    """The wheel contains all of sql/ inside the package, and the package data."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 - our own command
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shipped = {n.removeprefix("hta_sql/") for n in names if n.startswith("hta_sql/sql/")}
    here = {p.relative_to(ROOT).as_posix() for p in (ROOT / "sql").rglob("*") if p.is_file()}
    assert here
    assert shipped == here
    data = {
        "py.typed",
        "synthetic/model.json",
        "comparison/gate/default.toml",
    }
    assert {f"hta_sql/{name}" for name in data} <= names
    templates = {path.relative_to(ROOT).as_posix() for path in PACKAGE.rglob("*.j2")}
    assert len(templates) > 10
    assert templates <= names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)
