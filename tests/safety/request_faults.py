"""Patches for object storage clients that make one request fail, get lost or be the last one.

Within :func:`requests`, all requests for objects below a URL are counted. A request is identified
by its kind and the object name without random parts. The storage is either S3, where every request
of the client is observed, or fsspec's memory file system, whose methods represent requests.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import fsspec
import pytest

from tests.safety.file_faults import without_chance

MEMORY_CALLS = ("pipe_file", "cat_file", "put_file", "cp_file", "find", "rm", "_open")

WRITING = (
    *("pipe_file", "put_file", "cp_file", "rm"),
    *("Put", "Copy", "Delete", "Create", "Upload", "Complete", "Abort"),
)
"""Prefixes that identify requests that modify objects."""

PART_BYTES = 1 << 20
"""Part size of multipart uploads, which are used for objects of at least twice this size."""


@dataclass
class Requests:
    """Counts the requests to a storage, and injects a fault into one of them.

    Attributes:
        top: Prefix of the observed objects.
        at: Index of the faulty request; None: no fault.
        how: ``fail``: the request does not reach the storage. ``lost``: its response is lost.
            ``again``: its response is lost, with an error that makes the client retry. ``stop``:
            neither this request nor any later one reaches the storage, as if the process had been
            killed.
    """

    top: str
    at: int | None = None
    how: str = "fail"
    seen: list[str] = field(default_factory=list)

    def before(self, kind: str, name: str) -> bool:
        """Count a request; raise its error, or return whether its response must get lost."""
        if not f"{name}/".startswith(self.top):
            return False
        request = f"{kind} {without_chance(name[len(self.top) :])}".rstrip()
        self.seen.append(request)
        now = len(self.seen) - 1
        if self.at is None or now < self.at or (now > self.at and self.how != "stop"):
            return False
        if self.how in ("fail", "stop"):
            raise self.error(request)
        return True

    def error(self, request: str) -> Exception:
        """Return the error that the faulty request raises."""
        return OSError(errno.ETIMEDOUT, f"the storage backend is not responding: {request}")


class S3Requests(Requests):
    """Counts requests to an S3 server, and raises the errors of the S3 client."""

    def error(self, request: str) -> Exception:
        """Return the client's error for the faulty request, either final or retriable."""
        from botocore import exceptions  # type: ignore[import-untyped] # noqa: PLC0415 - an extra

        code = {
            "Error": {"Code": "InternalError", "Message": "The storage backend is not responding."}
        }
        error: Exception = {
            "again": exceptions.ReadTimeoutError(endpoint_url=request),
            "stop": exceptions.EndpointConnectionError(endpoint_url=request),
        }.get(self.how, exceptions.ClientError(code, request))
        return error


@contextmanager
def requests(url: str, at: int | None = None, how: str = "fail") -> Iterator[Requests]:
    """Count the requests to a storage, and inject a fault into one of them.

    With ``stop``, all later requests fail as well.
    """
    fs, top = fsspec.url_to_fs(url)
    with pytest.MonkeyPatch.context() as patch:
        if url.startswith("s3://"):
            layer: Requests = S3Requests(f"{top}/", at, how)
            _patch_s3(patch, layer)
        else:
            layer = Requests(f"{top}/", at, how)
            for name in MEMORY_CALLS:
                patch.setattr(type(fs), name, _counted(layer, name, getattr(type(fs), name)))
        yield layer


def _patch_s3(patch: pytest.MonkeyPatch, layer: Requests) -> None:
    import s3fs.core  # noqa: PLC0415 - an extra
    from aiobotocore.client import (  # type: ignore[import-untyped] # noqa: PLC0415
        AioBaseClient,
    )
    from moto.s3 import models  # noqa: PLC0415

    call = AioBaseClient._make_api_call  # only the network is below it

    async def counted(self: Any, kind: str, given: dict[str, Any]) -> Any:
        key = given.get("Key") or given.get("Prefix") or ""
        if objects := given.get("Delete", {}).get("Objects"):
            key = objects[0]["Key"]
        is_lost = layer.before(kind, f"{given.get('Bucket')}/{key}")
        answer = await call(self, kind, given)
        if is_lost:
            raise layer.error(kind)
        return answer

    patch.setattr(AioBaseClient, "_make_api_call", counted)
    patch.setattr(s3fs.core, "calculate_chunksize", lambda *_, **__: PART_BYTES)
    patch.setattr(models, "S3_UPLOAD_PART_MIN_SIZE", 1)


def _counted(layer: Requests, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(fs: Any, *given: Any, **named: Any) -> Any:
        path = given[1] if name in ("put_file", "cp_file") else given[0]
        is_lost = layer.before(name, str(path[0] if isinstance(path, list) else path))
        answer = real(fs, *given, **named)
        if is_lost:
            raise layer.error(name)
        return answer

    return call
