"""``hta-sql explore``: a store in the browser."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import click

from hta_sql.cli.messages import note
from hta_sql.cli.options import MEMORY_SIZE, STORE

HOST = "127.0.0.1"
_LOOK_AGAIN_S = 0.1


@click.command(short_help="Explore a store in the browser.")
@click.argument("store", type=STORE)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    show_default="any that is free",
    help="Port on 127.0.0.1.",
)
@click.option("--print", "only_prints", is_flag=True, help="Print the URL; open no browser.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with a password that the page asks for: on a machine that others use, too.",
)
@click.option(
    "--memory-limit",
    type=MEMORY_SIZE,
    default="4GB",
    help="Memory that a question may take.",
)
def explore(
    *,
    store: Path,
    port: int | None,
    only_prints: bool,
    token_file: Path | None,
    memory_limit: str,
) -> None:
    """Explore a STORE in the browser: run, ranks, steps and topic are chosen, charts and tables follow.

    A selection in a chart filters the table below it; every view shows its SQL, and questions of
    your own are asked beside the list of tables. The store is only read. Needs pip install
    'hta_sql[explore]'. Ctrl-C ends it.
    """
    import hta_sql  # noqa: PLC0415 - imports are the start-up cost
    from hta_sql.errors import ExtraNotInstalledError  # noqa: PLC0415
    from hta_sql.explorer.views import MEMORY_LIMIT  # noqa: PLC0415
    from hta_sql.explorer.views import STORE as VARIABLE  # noqa: PLC0415

    if find_spec("marimo") is None:
        raise ExtraNotInstalledError("marimo is not installed: pip install 'hta_sql[explore]'")
    with hta_sql.open(store):
        pass  # says what is wrong with it, and renews its catalog
    page = Path(hta_sql.__file__).parent / "explorer" / "page.py"
    port = port or _free_port()
    options = ["--host", HOST, "--port", str(port), *(["--headless"] if only_prints else [])]
    options += ["--token", "--token-password-file", str(token_file)] if token_file else []
    with subprocess.Popen(  # noqa: S603 - a program of this environment, no shell
        [sys.executable, "-m", "hta_sql.explorer", "-q", "run", str(page), *options],
        env=os.environ | {VARIABLE: str(store), MEMORY_LIMIT: memory_limit},
        # It ends when this pipe does. Ctrl-C is ours: marimo would ask whether one is sure.
        stdin=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        try:
            _wait_for(process, port)
            click.echo(f"http://{HOST}:{port}")
            note("Ctrl-C ends it.")
            if process.wait():
                raise click.ClickException("The explorer ended; what it says stands above.")
        finally:
            process.terminate()


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    """Return once the page is there, or its process has ended."""
    while process.poll() is None:
        with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        time.sleep(_LOOK_AGAIN_S)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])
