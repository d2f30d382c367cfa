"""``hta-sql explore``: explores a store in the browser."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import threading
import webbrowser
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, cast

import click

from hta_sql.cli.messages import note
from hta_sql.cli.options import MEMORY_SIZE, STORE

_TOKEN_BYTES = 24


@click.command(short_help="Explore a store in the browser.")
@click.argument("store", type=STORE)
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    show_default="any free port",
    help="Port on 127.0.0.1.",
)
@click.option("--print", "only_prints", is_flag=True, help="Print the URL; open no browser.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the password of the page; default: a random token in the URL.",
)
@click.option(
    "--memory-limit",
    type=MEMORY_SIZE,
    default="4GB",
    help="Memory limit of a query.",
)
def explore(
    *,
    store: Path,
    port: int | None,
    only_prints: bool,
    token_file: Path | None,
    memory_limit: str,
) -> None:
    """Explore a STORE in the browser: charts and tables for a selected run, ranks, steps and topic.

    A selection in a chart filters the table below it. Every view shows its SQL, and you can run
    your own queries next to the list of tables. The store is read-only. The page requires the token
    in the printed URL, and rejects requests of other web pages. Other users of the machine can see
    the URL that a browser is started with: on a shared machine, use --print or --token-file. Needs
    pip install 'hta_sql[explore]'. Ctrl-C ends it.
    """
    import hta_sql  # noqa: PLC0415 - lazy, to start faster
    from hta_sql.errors import ExtraNotInstalledError  # noqa: PLC0415
    from hta_sql.serve.explorer.guard import HOST  # noqa: PLC0415
    from hta_sql.serve.explorer.views import MEMORY_LIMIT  # noqa: PLC0415
    from hta_sql.serve.explorer.views import STORE as VARIABLE  # noqa: PLC0415

    if find_spec("marimo") is None:
        raise ExtraNotInstalledError("marimo is not installed: pip install 'hta_sql[explore]'")
    with hta_sql.open(store):
        pass  # reports problems, and refreshes the catalog
    token = _token_of(token_file) if token_file else secrets.token_urlsafe(_TOKEN_BYTES)
    with subprocess.Popen(  # noqa: S603 - Python of this environment, no shell
        [sys.executable, "-m", "hta_sql.serve.explorer", str(port or 0)],
        env=os.environ | {VARIABLE: str(store), MEMORY_LIMIT: memory_limit},
        # The process exits when this pipe is closed. The pipe carries the token, because other
        # users can list arguments.
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C must reach this command only, which then ends the page.
        start_new_session=True,
        text=True,
        errors="backslashreplace",
    ) as process:
        messages = threading.Thread(target=_print_messages, args=(process,), daemon=True)
        messages.start()
        try:
            if bound := _port_of(process, token):
                url = f"http://{HOST}:{bound}{'' if token_file else f'/?access_token={token}'}"
                click.echo(url)
                note("Press Ctrl-C to stop.")
                if not only_prints:
                    webbrowser.open(url)
            if process.wait():
                messages.join()
                raise click.ClickException("The explorer exited; see its messages above.")
        finally:
            process.terminate()


def _print_messages(process: subprocess.Popen[str]) -> None:
    """Print the messages of the page's process through this one, which escapes them."""
    for line in cast("IO[str]", process.stderr):
        click.echo(line, nl=False, err=True)


def _token_of(file: Path) -> str:
    """Read a password file; an empty password is an error."""
    token = file.read_text(encoding="utf-8", errors="replace").strip()
    if not (token and token.isascii() and token.isprintable()):
        raise click.UsageError(
            f"{file} must contain a password: one line of printable ASCII characters"
        )
    return token


def _port_of(process: subprocess.Popen[str], token: str) -> int | None:
    """Send the token; return the port once the page is ready, or None if its process ended."""
    stdin, stdout = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
    with suppress(BrokenPipeError):
        stdin.write(f"{token}\n")
        stdin.flush()
    line = stdout.readline()
    return int(line) if line else None
