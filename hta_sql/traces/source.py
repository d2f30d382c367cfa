"""Opens a trace for reading: any fsspec URL, compressed or not, judged by content."""

from __future__ import annotations

import tarfile
import zipfile
from typing import BinaryIO, cast

import fsspec

from hta_sql.errors import TraceFormatError, TraceNotFoundError
from hta_sql.traces.formats import guess_binary
from hta_sql.traces.unpack import GZIP_MAGIC, ZSTD_MAGIC, UnpackedStream

ZIP_MAGIC = b"PK\x03\x04"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
BLOCK_BYTES = 1 << 20
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")

MAX_LAYERS = 3
"""A trace may be packed twice by mistake; more is an attack."""

MAX_RATIO, ALWAYS_ALLOWED_BYTES = 250, 1 << 30
"""Traces shrink 10 to 60 times; a file that unpacks to more than this is an attack or an accident."""


def file_bytes(path: str) -> int:
    """Return the size of a file; 0 where its storage does not say."""
    fs, name = fsspec.url_to_fs(path)
    return int(fs.size(name) or 0)


def max_unpacked_bytes(path: str) -> int:
    """Return how large a trace may be when it is unpacked."""
    return max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * file_bytes(path))


def archive_members(path: str) -> list[str]:
    """List the files of a zip or tar archive as URLs; nothing is unpacked to disk.

    Raises:
        TraceFormatError: The archive cannot be read.
    """
    kind = "zip" if path.endswith(".zip") else "tar"
    try:
        fs = fsspec.filesystem(kind, fo=path)
        return [f"{kind}://{name}::{path}" for name in sorted(fs.find(""))]
    except (OSError, ValueError, tarfile.TarError, zipfile.BadZipFile) as error:
        raise TraceFormatError(f"{path!r} is not a readable {kind} archive: {error}.") from error


def open_trace(path: str) -> BinaryIO:
    """Open a trace as a stream of JSON bytes; the suffix of its name means nothing.

    A compressed stream that breaks off ends there; see :class:`UnpackedStream`.

    Raises:
        TraceNotFoundError: There is no such file.
        TraceFormatError: The bytes are no kind of text that a trace can be.
        ExtraNotInstalledError: The file is zstd and no reader is installed.
    """
    try:
        fs, name = fsspec.url_to_fs(path)
        raw = cast("BinaryIO", fs.open(name, "rb"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TraceNotFoundError(f"Cannot open trace {path!r}: {reason}.") from error
    if "::" in path:
        # An archive closes its file with its last reference; the member does not hold one.
        raw.archive = fs  # type: ignore[attr-defined]
    magic = raw.read(4)
    raw.seek(0)
    stream: BinaryIO | UnpackedStream = raw
    for _ in range(MAX_LAYERS):
        if not (magic.startswith(GZIP_MAGIC) or magic == ZSTD_MAGIC):
            break
        stream = UnpackedStream(stream, magic, path)
        magic = stream.peek(4)
    try:
        _check_text(path, magic)
    except TraceFormatError:
        stream.close()
        raise
    return cast("BinaryIO", stream)


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
