"""Run the explorer's page in its own process: ``python -m hta_sql.serve.explorer PORT``.

``hta-sql explore`` starts it. The first line of stdin is the token. The first line of stdout is the
port, written as soon as the page can be opened. The process ends when its stdin is closed, so it
never outlives the process that started it.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import chdir
from pathlib import Path
from typing import Any

from hta_sql.serve.explorer.guard import HOST, guarded

_KEEP_ALIVE_S = 300
_PAGE = Path(__file__).with_name("page.py")


def _end_with_parent() -> None:
    while os.read(
        sys.stdin.fileno(), 1
    ):  # unbuffered, since the lock of a buffer would abort the interpreter at exit
        pass
    os._exit(0)


def _app(token: str, port: int) -> Any:
    """Return the page as an ASGI app that requires the token and rejects foreign requests."""
    import marimo  # noqa: PLC0415 - imported after the port is known to be free

    def with_port(app: Any) -> Any:
        # marimo names its session cookie by the port. All ports of a host share cookies, so without
        # it a second explorer would end the session of the first.
        app.state.port = port
        return app

    with chdir(
        _PAGE.parent
    ):  # marimo reads settings from the working directory, and the user's may be untrusted
        builder = marimo.create_asgi_app(quiet=True, token=token, skew_protection=True)
    page = builder.with_app(path="", root=str(_PAGE), middleware=[with_port]).build()
    return guarded(page, port)


def _serve(port: int, token: str) -> None:
    listener = socket.create_server((HOST, port))
    port = listener.getsockname()[1]
    app = _app(token, port)
    import uvicorn  # noqa: PLC0415 - part of marimo

    config = uvicorn.Config(
        app,
        log_level="error",
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=1,
    )
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # the parent reads only the first line
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    token = sys.stdin.readline().rstrip("\n")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        _serve(int(sys.argv[1]), token)
    except OSError as error:
        sys.exit(f"Port {sys.argv[1]} on this machine cannot be used: {error.strerror}.")
