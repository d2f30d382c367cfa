"""Serve a trace once, from this machine to a trace viewer page in the browser.

The content security policy of Perfetto's page allows it to read from 127.0.0.1:9001 and no other
port, so the port is fixed for that page. Requests with a different ``Host`` (DNS rebinding) or
without the page's ``Origin`` get status 403. Paths other than the secret one get 404, and other
methods get 501.
"""

from __future__ import annotations

import logging
import secrets
import shutil
import sys
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from hta_sql.errors import ParameterError

log = logging.getLogger(__name__)

_HOST = "127.0.0.1"

IDLE_S = 10.0
"""Time after which a connection without traffic is closed [s]."""

_POLL_S = 0.05


class TraceServer(ThreadingHTTPServer):
    """Server of one file that stops after the file has been read.

    Each connection has its own thread, so that an idle connection does not delay the others.
    Browsers open idle connections ahead of their requests.

    Args:
        path: Path of the file.
        origin: Page that may read the file: scheme, host and port.
        port: Port on 127.0.0.1; 0 selects any free port.

    Raises:
        ParameterError: The port is in use.
    """

    def __init__(self, path: Path, origin: str, port: int) -> None:
        try:
            super().__init__((_HOST, port), _Handler)
        except OSError as error:
            raise ParameterError(
                f"Port {port} on this machine cannot be used: {error.strerror}. Perfetto's page "
                "reads from this port only: stop the program that uses the port (trace_processor "
                "--httpd?), or write the trace to a file with -o and open the file."
            ) from error
        self.path = path
        self.origin = origin.rstrip("/")
        # A secret path, which no other user of the machine can guess.
        self.name = f"/{secrets.token_urlsafe(16)}/{quote(path.name)}"
        self.read = threading.Event()

    @property
    def is_read(self) -> bool:
        """Whether a page has read the file to its end."""
        return self.read.is_set()

    @property
    def host(self) -> str:
        """The host and port as in a browser's ``Host`` header."""
        return f"{_HOST}:{self.server_port}"

    def link(self, view: Mapping[str, int]) -> str:
        """Return the URL that opens the trace.

        Args:
            view: Initial view, in nanoseconds of the trace: ``visStart`` and ``visEnd``; ``ts``,
                ``dur``, ``pid`` and ``tid`` of an event to select.
        """
        asked = {"url": f"http://{self.host}{self.name}", **view}
        return f"{self.origin}/#!/?{urlencode(asked)}"

    def serve(self, wait_s: float) -> bool:
        """Serve requests until the file has been read.

        Args:
            wait_s: Maximum time to wait, even if a connection is open [s].

        Returns:
            Whether the file was read.
        """
        threading.Thread(target=self.serve_forever, args=(_POLL_S,), daemon=True).start()
        try:
            return self.read.wait(wait_s)
        finally:
            self.shutdown()

    def server_close(self) -> None:
        """Close the port; threads of open connections end with the process."""
        self.socket.close()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - inherited signature
        """Ignore a broken connection: the page can send the request again."""
        log.debug("A connection to the trace was lost: %s", sys.exc_info()[1])


class _Handler(BaseHTTPRequestHandler):
    server: TraceServer
    timeout = IDLE_S

    def do_OPTIONS(self) -> None:
        """Allow the page to read from this machine."""
        if self._is_allowed():
            self.send_response(HTTPStatus.NO_CONTENT)
            self._send_origin()
            self.send_header("Access-Control-Allow-Methods", "GET")
            self.send_header("Access-Control-Allow-Private-Network", "true")
            self.end_headers()

    def do_GET(self) -> None:
        """Send the trace."""
        if not self._is_allowed():
            return
        with self.server.path.open("rb") as trace:
            self.send_response(HTTPStatus.OK)
            self._send_origin()
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(self.server.path.stat().st_size))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            try:
                shutil.copyfileobj(trace, self.wfile)
            except (BrokenPipeError, ConnectionResetError, TimeoutError):
                return
        self.server.read.set()

    def _is_allowed(self) -> bool:
        sources = self.headers.get_all("Host"), self.headers.get_all("Origin")
        if sources != ([self.server.host], [self.server.origin]):
            self.send_error(HTTPStatus.FORBIDDEN)
            return False
        if not secrets.compare_digest(self.path.encode(), self.server.name.encode()):
            self.send_error(HTTPStatus.NOT_FOUND)
            return False
        return True

    def _send_origin(self) -> None:
        self.send_header("Access-Control-Allow-Origin", self.server.origin)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - inherited name
        """Suppress the request log: the user sees the page."""
