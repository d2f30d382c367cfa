"""Tests of the imports at start-up and of the documentation of commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import hta_sql
from docs.generate.commands import updated
from hta_sql.cli import COMMANDS, command_of
from hta_sql.traces.compiled import reader_at_work

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("args", [["--help"], ["run", "--help"], ["list"], ["describe", "gpu_ops"]])
def test_help_and_descriptions_import_nothing_slow(args: list[str]) -> None:
    """Help and descriptions do not import DuckDB or other slow modules."""
    code = (
        "import sys; from hta_sql.cli import main; main(sys.argv[1:]); "
        "slow = {'duckdb', 'pandas', 'numpy', 'pyarrow', 'altair', 'rich', 'fsspec'}; "
        "sys.exit(repr(slow & set(sys.modules)) if slow & set(sys.modules) else 0)"
    )
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code, *args], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


STARTING = {
    "import hta_sql": set(),
    "main(['--version'])": {"hta_sql.cli.run", "hta_sql.store.disk.manifest", "concurrent.futures"},
    "main(['run', STORE, 'temporal_breakdown'])": {
        *("numpy", "pandas", "pyarrow", "fsspec", "hta_sql.cli.report", "hta_sql.ingestion.rank"),
    },
    "main(['run', STORE, 'temporal_breakdown', '--format', 'csv'])": {
        *("pandas", "pyarrow.compute", "pyarrow.parquet", "fsspec"),
    },
}
"""Command ─▶ modules that it must not import, in addition to the ones that none may import."""


@pytest.mark.parametrize("started", STARTING)
def test_starting_imports_only_what_it_uses(started: str, store: Path) -> None:
    """Short commands do not import modules that they do not use, as imports dominate their time."""
    needless = STARTING[started] | {"altair", "rich", "hta_sql.charts", "hta_sql.hta", "unittest"}
    if "STORE" not in started:
        needless |= {"duckdb", "numpy", "pandas", "pyarrow", "fsspec"}
    code = (
        f"import sys; STORE = sys.argv[1]; from hta_sql.cli import main; {started}; "
        f"sys.exit(repr(sorted({needless!r} & set(sys.modules))))"
    )
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", code, str(store)], capture_output=True, text=True, check=False
    )
    assert done.stderr == "[]\n"


def test_module_and_no_arguments_show_the_commands(cli: Cli) -> None:
    """``hta-sql`` without arguments lists the commands in the intended order."""
    done = cli()
    assert done.code == 0
    names = re.findall(r"^  (\w[\w-]*)  ", done.out, re.MULTILINE)
    assert names == list(COMMANDS)


def test_the_version_says_which_reader_is_at_work(cli: Cli) -> None:
    """``--version`` shows whether the compiled reader is used, missing or disabled."""
    said = f"hta-sql {hta_sql.__version__} (reader: {reader_at_work()})\n"
    assert cli("--version").out == said


def test_the_reference_is_current() -> None:
    """docs/cli.md is current. If this fails, run ``make docs``."""
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert text == updated(text)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    """Every command and option has a help text and is documented in docs/cli.md."""
    import click  # noqa: PLC0415

    command = command_of(name)
    assert command.name == name
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    section = text.split(f"### hta-sql {command.name}\n")[1].split("\n### ")[0]
    assert command.help
    for param in command.params:
        if isinstance(param, click.Option) and not param.hidden:
            assert param.help
            for option in param.opts:
                assert option in section
