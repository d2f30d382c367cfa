"""``hta-sql open`` serves the trace once, and only to the page that it opens."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from hta_sql.cli import main
from hta_sql.errors import ParameterError
from hta_sql.serve import perfetto as serving_module
from hta_sql.serve.perfetto import TraceServer
from tests.golden_cases import TESTS
from tests.report_pages import browser
from tests.shared_stores import ingest_only

TRACE = TESTS / "traces" / "every_table.json"
PAGE = "https://perfetto.example"
STUB = """<!doctype html><title>asking</title><script>
const asked = new URLSearchParams(location.hash.slice(location.hash.indexOf("?")));
fetch(asked.get("url")).then((answer) => answer.arrayBuffer()).then(
  (trace) => { document.title = `${trace.byteLength} ${asked.get("visStart")}`; },
  () => { document.title = "refused"; },
);
</script>"""


@contextmanager
def serving(path: Path, origin: str = PAGE, wait_s: float = 20) -> Iterator[TraceServer]:
    """Serve a file in a background thread."""
    with TraceServer(path, origin, 0) as server:
        thread = threading.Thread(target=server.serve, args=(wait_s,), daemon=True)
        thread.start()
        yield server
        thread.join(timeout=wait_s)
        assert not thread.is_alive()


def answer(
    server: TraceServer, path: str, method: str = "GET", **headers: str
) -> tuple[int, bytes]:
    """Send a request to the server; return the status and the body."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    connection.request(method, path, headers=headers)
    response = connection.getresponse()
    return response.status, response.read()


def test_a_trace_is_served_once() -> None:
    """The trace is served completely to a client that knows its path, and then the server ends."""
    with serving(TRACE) as server:
        assert answer(server, server.name, Origin=PAGE) == (200, TRACE.read_bytes())
    assert server.is_read


def test_only_the_page_with_the_link_reads_the_trace() -> None:
    """A request with a different host, origin, path or method is refused."""
    with serving(TRACE) as server:
        foreign: list[dict[str, str]] = [
            {"Origin": "https://elsewhere.example"},
            {"Origin": "null"},
            {"Origin": f"http://{server.host}"},
            {"Origin": PAGE, "Host": f"localhost:{server.server_port}"},
            {"Origin": PAGE, "Host": f"elsewhere.example:{server.server_port}"},
            {},
        ]
        for method in ("GET", "OPTIONS"):
            refused = [answer(server, server.name, method, **headers)[0] for headers in foreign]
            assert refused == [http.client.FORBIDDEN] * len(foreign)
        unknown = [f"/{TRACE.name}", "/", f"{server.name}/../{TRACE.name}"]
        assert [answer(server, path, Origin=PAGE)[0] for path in unknown] == [404, 404, 404]
        others = [answer(server, server.name, m, Origin=PAGE)[0] for m in ("HEAD", "POST", "PUT")]
        assert others == [http.client.NOT_IMPLEMENTED] * len(others)
        assert answer(server, server.name, "OPTIONS", Origin=PAGE)[0] == http.client.NO_CONTENT
        assert not server.is_read
        answer(server, server.name, Origin=PAGE)


def test_a_silent_connection_does_not_keep_the_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent connection, which browsers open in advance, does not block the next one."""
    monkeypatch.setattr(serving_module._Handler, "timeout", 0.1)
    with (
        serving(TRACE) as server,
        socket.create_connection(("127.0.0.1", server.server_port)),
    ):
        assert answer(server, server.name, Origin=PAGE)[0] == http.client.OK


def test_nobody_comes() -> None:
    """If no client connects, the server ends after a timeout."""
    with TraceServer(TRACE, PAGE, 0) as server:
        assert server.serve(0.05) is False


IDLE = (
    b"",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    b"\0" * 70_000,
)
"""Data that a client sends before it stops: nothing, half a request, or an endless line."""


@pytest.mark.parametrize("sent", IDLE, ids=["nothing", "half a request", "no line"])
def test_an_idle_connection_does_not_prolong_the_wait(sent: bytes) -> None:
    """The server ends in time even if an idle client stays connected."""
    with (
        TraceServer(TRACE, PAGE, 0) as server,
        socket.create_connection(("127.0.0.1", server.server_port)) as client,
    ):
        client.sendall(sent)
        began = time.monotonic()
        assert server.serve(0.2) is False
        assert time.monotonic() - began < 5


def test_idle_connections_do_not_keep_a_page_waiting() -> None:
    """A request is answered at once, even while a browser holds idle connections open."""
    with ExitStack() as opened, serving(TRACE) as server:
        for _ in range(5):
            client = socket.create_connection(("127.0.0.1", server.server_port))
            opened.enter_context(client)
        assert answer(server, server.name, Origin=PAGE) == (200, TRACE.read_bytes())


def test_a_reader_that_stops_does_not_prolong_the_wait(tmp_path: Path) -> None:
    """A client that stops reading does not delay the end of the server."""
    trace = tmp_path / "trace.json"
    trace.write_bytes(b" " * (64 << 20))
    with (
        TraceServer(trace, PAGE, 0) as server,
        socket.create_connection(("127.0.0.1", server.server_port)) as client,
    ):
        client.sendall(f"GET {server.name} HTTP/1.1\r\nHost: {server.host}\r\n\r\n".encode())
        began = time.monotonic()
        assert server.serve(0.5) is False
        assert time.monotonic() - began < 5


def test_a_taken_port_is_said() -> None:
    """If the port is taken, the error explains why that port is needed."""
    with (
        TraceServer(TRACE, PAGE, 0) as server,
        pytest.raises(ParameterError, match="Perfetto's page reads from this port only"),
    ):
        TraceServer(TRACE, PAGE, server.server_port)


def test_a_link_says_where_to_look() -> None:
    """The link has the format that Perfetto's page expects."""
    with TraceServer(TRACE, PAGE + "/", 0) as server:
        link = urlsplit(server.link({"visStart": 10**15, "visEnd": 10**15 + 1}))
    assert (link.scheme, link.netloc, link.path) == ("https", "perfetto.example", "/")
    asked = parse_qs(link.fragment.removeprefix("!/?"))
    assert asked == {
        "url": [f"http://{server.host}{server.name}"],
        "visStart": ["1000000000000000"],
        "visEnd": ["1000000000000001"],
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest one trace and return the path of its store."""
    path = tmp_path_factory.mktemp("open") / "job.store"
    ingest_only([str(TRACE)], path, jobs=1)
    return path


def test_a_slice_is_written(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With ``-o``, the slice is written to a file and no server is started."""
    target = tmp_path / "slice.json"
    assert main(["open", str(store), "-o", str(target)]) == 0
    said = capsys.readouterr()
    assert said.out == f"{target}\n"
    assert json.loads(target.read_text(encoding="utf-8"))["traceEvents"]
    assert "events" in said.err


def test_the_url_is_printed_and_the_wait_ends(
    store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With ``--print``, the URL is printed, and the server ends after its timeout."""
    assert main(["open", str(store), "--print", "--port", "0", "--wait", "0.1"]) == 1
    said = capsys.readouterr()
    assert said.out.startswith("https://ui.perfetto.dev/#!/?url=http%3A%2F%2F127.0.0.1%3A")
    assert "No browser read the trace within 0.1 s" in said.err


@pytest.mark.browser
def test_a_page_in_a_browser_reads_it(tmp_path: Path) -> None:
    """A browser page from a different origin can read the trace through the link."""
    (tmp_path / "index.html").write_text(STUB, encoding="utf-8")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), handler) as page,
        browser(tmp_path / "profile", offline=False) as chromium,
    ):
        threading.Thread(target=page.serve_forever, daemon=True).start()
        origin = f"http://127.0.0.1:{page.server_port}"
        with serving(TRACE, origin) as server:
            chromium.visit(server.link({"visStart": 5}))
            chromium.wait("return document.title !== 'asking'")
            told = "return document.title"
            assert chromium.ask(told) == f"{TRACE.stat().st_size} 5"
        page.shutdown()
