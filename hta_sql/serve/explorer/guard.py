"""Reject requests to a local server that come from foreign web pages.

A page of another site can open a websocket to 127.0.0.1; ``Origin`` reveals this. If the owner of a
host name points it to 127.0.0.1 (DNS rebinding), browsers take the server for a part of the owner's
site; ``Host`` reveals this.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Coroutine[Any, Any, None]]

HOST = "127.0.0.1"

NAMES = (HOST, "localhost")
"""Names under which a browser reaches a server that listens on 127.0.0.1."""

_HTTP_PORT = 80
_REASON = b"Refused: open the URL that hta-sql explore prints.\n"


def guarded(app: App, port: int) -> App:
    """Return an ASGI app that passes requests to ``app`` only if they come from its own pages.

    ``Host`` must be the address of the server. Browsers send ``Origin`` with every websocket and
    every write request; it must be missing or the same address. All other requests get status 403
    before the app sees them, and a websocket is closed in its handshake.

    Args:
        app: The ASGI app.
        port: Port on 127.0.0.1 that the server listens on.
    """
    hosts = {f"{name}:{port}".encode() for name in NAMES}
    if port == _HTTP_PORT:  # browsers omit the default port
        hosts |= {name.encode() for name in NAMES}
    origins = {b"http://" + host for host in hosts}

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan" or _is_own(scope, hosts, origins):
            await app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": 403, "headers": headers})
            await send({"type": "http.response.body", "body": _REASON})

    return checked


def _is_own(scope: Scope, hosts: set[bytes], origins: set[bytes]) -> bool:
    host = [value for name, value in scope["headers"] if name == b"host"]
    origin = [value for name, value in scope["headers"] if name == b"origin"]
    return len(host) == 1 and host[0].lower() in hosts and set(origin) <= origins
