"""Foreign web pages and unauthorized users cannot access the explorer.

The tests send real HTTP requests and websockets to a running explorer.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import uuid
from collections.abc import Iterator, MutableMapping
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from hta_sql.cli import main
from hta_sql.serve.explorer.guard import guarded
from tests.explorer.explored import explored
from tests.golden_cases import TESTS
from tests.shared_stores import ingest_only
from tests.terminals import acting, terminal

PORT = 4321
OWN = ("127.0.0.1", "localhost")
FOREIGN_HOSTS = ("rebound.example", "127.0.0.1.rebound.example", "127.0.0.2", "localhost.")
PASSWORD = "chosen by the user"  # noqa: S105 - of a test
ROUTES = (
    "/",
    "/health",
    "/auth/login",
    "/api/version",
    "/api/kernel/function_call",
    "/favicon.ico",
)


def foreign_origins(port: int) -> tuple[str, ...]:
    """List foreign origins, some of which resemble the explorer's own origin."""
    return (
        "null",
        "https://elsewhere.example",
        f"https://127.0.0.1:{port}",
        f"http://127.0.0.1:{port + 1}",
        f"http://127.0.0.1:{port}.elsewhere.example",
        "http://127.0.0.1",
        "",
    )


class Server:
    """A running explorer, to which tests send requests from any origin."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname == "127.0.0.1"
        self.port = parts.port or 0
        self.token = parse_qs(parts.query).get("access_token", [""])[0]

    def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
        """Send a request; return the response status and the redirect location."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
            connection.request(method, path, headers=headers)
            response = connection.getresponse()
            response.read()
            return response.status, response.headers.get("Location", "")

    def handshake(
        self, host: str = "127.0.0.1", origin: str | None = None, token: str | None = None
    ) -> str:
        """Open a websocket; return its first operation, or the HTTP status if it is refused."""
        query = f"?session_id=s_{uuid.uuid4().hex}"
        query += f"&access_token={token}" if token is not None else ""
        headers = {} if origin is None else {"Origin": origin}
        uri = f"ws://{host}:{self.port}/ws{query}"
        with closing(socket.create_connection(("127.0.0.1", self.port))) as address:
            try:
                with connect(uri, sock=address, additional_headers=headers, proxy=None) as page:
                    return str(json.loads(page.recv(timeout=20))["op"])
            except InvalidStatus as refused:
                return str(refused.response.status_code)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest one trace and return the path of its store."""
    path = tmp_path_factory.mktemp("foreign") / "job.store"
    ingest_only([str(TESTS / "traces" / "every_table.json")], path, jobs=1)
    return path


@pytest.fixture(scope="module")
def server(store: Path) -> Iterator[Server]:
    """Start the explorer."""
    with explored(store) as (_, url):
        yield Server(url)


def test_a_foreign_page_opens_no_websocket(server: Server) -> None:
    """Websockets from a foreign origin or host name are refused, even with the token."""
    for origin in foreign_origins(server.port):
        assert server.handshake(origin=origin, token=server.token) == "403", origin
    for host in FOREIGN_HOSTS:
        assert server.handshake(host, token=server.token) == "403", host
        own = f"http://{host}:{server.port}"
        assert server.handshake(host, own, server.token) == "403", host


def test_a_websocket_needs_the_token(server: Server) -> None:
    """The explorer's own page can open a websocket only with the right token."""
    own = f"http://127.0.0.1:{server.port}"
    for token in (None, "", "wrong", server.token[:-1], server.token + "x", server.token.upper()):
        assert server.handshake(origin=own, token=token) == "403", token
    for host in OWN:
        origin = f"http://{host}:{server.port}"
        assert server.handshake(host, origin, server.token) == "kernel-ready"
    assert server.handshake(token=server.token) == "kernel-ready"


def test_a_foreign_page_gets_no_answer_over_http(server: Server) -> None:
    """Every route refuses foreign origins and hosts for every method, even with the token."""
    for path in ROUTES:
        for method in ("GET", "POST", "OPTIONS"):
            asked = f"{path}?access_token={server.token}"
            for origin in foreign_origins(server.port):
                status, _ = server.get(asked, method, Origin=origin)
                assert status == http.client.FORBIDDEN, (path, method, origin)
            for host in FOREIGN_HOSTS:
                status, _ = server.get(asked, method, Host=f"{host}:{server.port}")
                assert status == http.client.FORBIDDEN, (path, method, host)
    assert server.get("/", Host="127.0.0.1")[0] == http.client.FORBIDDEN


def test_http_needs_the_token(server: Server) -> None:
    """The printed URL opens the page; without the token, requests are redirected or refused."""
    assert len(server.token) >= 32
    for token in ("", "?access_token=", "?access_token=wrong"):
        status, where = server.get(f"/{token}")
        assert (status, urlsplit(where).path) == (http.client.SEE_OTHER, "/auth/login")
        assert server.get(f"/api/version{token}")[0] == http.client.UNAUTHORIZED
    for host in OWN:
        address = f"{host}:{server.port}"
        headers = {"Host": address, "Origin": f"http://{address}"}
        assert server.get(f"/api/version?access_token={server.token}", **headers)[0] == 200
        status, where = server.get(f"/?access_token={server.token}", **headers)
        assert (status, urlsplit(where).path) == (http.client.SEE_OTHER, "/")


def test_a_chosen_password_is_not_part_of_the_url(store: Path, tmp_path: Path) -> None:
    """With a password file, the URL has no token, and only the password opens the page."""
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n", encoding="utf-8")
    with explored(store, "--token-file", str(file)) as (_, url):
        assert urlsplit(url).query == ""
        server = Server(url)
        asked = PASSWORD.replace(" ", "%20")
        assert server.handshake(token="") == "403"
        assert server.handshake(token=asked) == "kernel-ready"
        assert server.get("/api/version")[0] == http.client.UNAUTHORIZED
        assert server.get(f"/api/version?access_token={asked}")[0] == http.client.OK


def test_a_stranger_cannot_act_on_the_terminal(store: Path) -> None:
    """Control characters in an unauthorized request are escaped in the log."""
    with terminal() as (theirs, printed):
        with explored(store, stderr=theirs) as (_, url):
            headers = {"Marimo-Server-Token": "\x9b66m"}
            status, _ = Server(url).get("/api/kernel/instantiate", "POST", **headers)
            assert status == http.client.UNAUTHORIZED
        shown = printed()
    assert "\\u009b66m" in shown
    assert acting(shown) == set()


@pytest.mark.parametrize("text", ["", " \n", "two\nlines", "zwölf"])
def test_an_unusable_password_is_refused(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    """An empty, multi-line or non-ASCII password is refused."""
    file = tmp_path / "password"
    file.write_text(text, encoding="utf-8")
    assert main(["explore", str(store), "--print", "--token-file", str(file)]) == 2
    assert "must contain a password" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        ([(b"host", b"127.0.0.1:4321")], True),
        ([(b"host", b"LOCALHOST:4321")], True),
        ([(b"host", b"localhost:4321"), (b"origin", b"http://localhost:4321")], True),
        ([(b"host", b"localhost:4321"), (b"origin", b"http://127.0.0.1:4321")], True),
        ([(b"host", b"127.0.0.1:4321"), (b"origin", b"null")], False),
        ([(b"host", b"127.0.0.1:4321"), (b"host", b"rebound.example")], False),
        (
            [
                (b"host", b"127.0.0.1:4321"),
                (b"origin", b"http://127.0.0.1:4321"),
                (b"origin", b"http://elsewhere.example"),
            ],
            False,
        ),
        ([(b"host", b"127.0.0.1")], False),
        ([], False),
    ],
)
def test_what_the_guard_passes(kind: str, headers: list[tuple[bytes, bytes]], passes: bool) -> None:
    """Only requests whose host and origin are the server's own address reach the app."""
    reached: list[Any] = []
    sent: list[MutableMapping[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:  # noqa: ARG001 - of ASGI
        reached.append(scope)

    async def receive() -> MutableMapping[str, Any]:
        return {}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(guarded(app, PORT)({"type": kind, "headers": headers}, receive, send))
    assert len(reached) == passes
    refused = [{"type": "websocket.close", "code": 1008}] if kind == "websocket" else [403]
    assert [message.get("status", message) for message in sent[:1]] == ([] if passes else refused)
