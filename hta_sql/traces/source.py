"""Opens a trace for reading: any fsspec URL, compressed or not, judged by content."""

from __future__ import annotations

import os
import stat
from typing import Any, BinaryIO, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem

from hta_sql.errors import TraceFormatError, TraceNotFoundError
from hta_sql.traces.formats import guess_binary
from hta_sql.traces.unpack import BROKEN_ARCHIVE, GZIP_MAGIC, MEMBER, ZSTD_MAGIC, UnpackedStream

ZIP_MAGIC = b"PK\x03\x04"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
BLOCK_BYTES = 1 << 20
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")

MAX_LAYERS = 3
"""A trace may be packed twice by mistake; more is an attack."""

MAX_RATIO, ALWAYS_ALLOWED_BYTES = 250, 256 << 20
"""Traces shrink 10 to 60 times; a file that unpacks to more than this is an attack or an accident."""


def file_bytes(path: str) -> int:
    """Return the size of a file; 0 where its storage does not say."""
    fs, name = fsspec.url_to_fs(path)
    return int(fs.size(name) or 0)


def is_remote(path: str) -> bool:
    """Say whether a file, or the archive that it is in, comes over a network."""
    return "://" in path.rpartition("::")[2]


def max_unpacked_bytes(path: str) -> int:
    """Return how large a trace may be when it is unpacked; a member of an archive, by the archive."""
    return max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * file_bytes(path.rpartition("::")[2]))


def archive_members(path: str) -> list[str]:
    """List the files of a zip or tar archive as URLs; nothing is unpacked to disk.

    Raises:
        TraceFormatError: The archive cannot be read.
    """
    kind = "zip" if path.endswith(".zip") else "tar"
    try:
        fs = fsspec.filesystem(kind, fo=path)
        return [f"{kind}://{name}::{path}" for name in sorted(fs.find(""))]
    except BROKEN_ARCHIVE as error:
        raise TraceFormatError(f"{path!r} is not a readable {kind} archive: {error}.") from error


def open_trace(path: str) -> BinaryIO:
    """Open a trace as a stream of JSON bytes; the suffix of its name means nothing.

    A compressed stream that breaks off ends there; see :class:`UnpackedStream`. Reading one ends with
    a TraceFormatError where it unpacks to more than a trace of its size does.

    Raises:
        TraceNotFoundError: There is no such file, or it may not be read.
        TraceFormatError: It is no file, or its bytes are no kind of text that a trace can be.
        ExtraNotInstalledError: The file is zstd and no reader is installed.
    """
    stream = _opened(path)
    magic = stream.read(4)
    stream.seek(0)
    for _ in range(MAX_LAYERS):
        if not (magic.startswith(GZIP_MAGIC) or magic == ZSTD_MAGIC):
            break
        stream = UnpackedStream(stream, magic, path, max_unpacked_bytes(path))
        magic = stream.peek(4)
    try:
        _check_text(path, magic)
    except TraceFormatError:
        stream.close()
        raise
    return cast("BinaryIO", stream)


def _opened(path: str) -> BinaryIO | UnpackedStream:
    if "::" in path:
        return _member(path)
    try:
        fs, name = fsspec.url_to_fs(path)
        refuse_special_file(fs, name, path)
        return cast("BinaryIO", fs.open(name, "rb"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TraceNotFoundError(f"Cannot open trace {path!r}: {reason}.") from error


def _member(path: str) -> UnpackedStream:
    """Open a member of an archive: there may be anything in it, and nothing behind a link."""
    try:
        fs, name = fsspec.url_to_fs(path)
        raw = fs.open(name, "rb")
    except BROKEN_ARCHIVE as error:
        raise TraceNotFoundError(
            f"Cannot open trace {path!r}: it is no file in the archive, but a device, a link that "
            "leads nowhere, a name that begins with a slash, or damaged."
        ) from error
    # An archive closes its file with its last reference; the member does not hold one.
    raw.archive = fs
    return UnpackedStream(raw, MEMBER, path, max_unpacked_bytes(path))


def refuse_special_file(fs: Any, name: str, path: str) -> None:
    """Refuse what is no file, and may never end: a pipe, a socket, a device.

    Raises:
        TraceFormatError: It is one.
        OSError: There is nothing there.
    """
    if isinstance(fs, LocalFileSystem):
        mode = os.stat(name).st_mode  # noqa: PTH116 - as fsspec spells it
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise TraceFormatError(f"{path!r} is no file but a pipe, a socket or a device.")


def whole_text(stream: BinaryIO) -> bytes:
    """Read what is left of a stream that :func:`open_trace` opened."""
    return b"".join(iter(lambda: stream.read(BLOCK_BYTES), b""))


def _check_text(path: str, magic: bytes) -> None:
    foreign = guess_binary(magic) if magic.strip() else None
    if foreign:
        raise TraceFormatError(
            f"{path!r} is not a Kineto trace; it looks like {foreign.looks_like}. {foreign.advice}"
        )
    if magic.startswith(ZIP_MAGIC):
        raise TraceFormatError(f"{path!r} is a zip archive; its name must end in .zip.")
    if magic.startswith((GZIP_MAGIC, ZSTD_MAGIC)):
        raise TraceFormatError(
            f"{path!r} is compressed more than {MAX_LAYERS} times over; unpack it first."
        )
    if magic.startswith(UTF16_MARKS) or b"\0" in magic:
        raise TraceFormatError(
            f"{path!r} is not UTF-8 text (it starts with {magic!r}). If it is UTF-16, convert it: "
            "iconv -f UTF-16 -t UTF-8."
        )
