"""Opens a trace for reading: any fsspec URL, compressed or not, detected by content."""

from __future__ import annotations

import os
import stat
import sys
import tarfile
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, BinaryIO, cast

import fsspec
from fsspec.compression import compr
from fsspec.core import get_compression
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.tar import TarFileSystem

from hta_sql.errors import TraceFormatError, TraceNotFoundError
from hta_sql.traces.foreign_formats import guess_binary
from hta_sql.traces.merged import SCHEME, RankStream, file_of
from hta_sql.traces.unpack import (
    BROKEN_ARCHIVE,
    GZIP_MAGIC,
    MEMBER,
    BoundedFile,
    UnpackedStream,
    is_compressed,
)

ZIP_MAGIC = b"PK\x03\x04"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
BLOCK_BYTES = 1 << 20
ARCHIVE_SUFFIXES = (".zip", ".tar", ".tar.gz", ".tgz")

MAX_LAYERS = 3
"""A trace may be compressed twice by mistake; more layers are treated as an attack."""

MAX_RATIO, ALWAYS_ALLOWED_BYTES = 250, 256 << 20
"""Traces compress 10 to 60 times; a file beyond this ratio is treated as a decompression bomb."""

MEMBER_COUNTS_BYTES = 256 << 10
"""Bytes that each member of a compressed archive counts for when it is listed."""


def located(path: str) -> tuple[Any, str]:
    """Return the file system of a file, and its name there.

    Raises:
        TraceFormatError: The archive that contains the file unpacks to more than traces do.
    """
    path = file_of(path)
    if path.startswith("tar://") and "::" in path:
        name, _, archive = path.removeprefix("tar://").partition("::")
        return _tar(archive), name.strip("/")
    fs, name = fsspec.url_to_fs(path)
    return fs, str(name)


def _tar(path: str) -> Any:
    """Open a tar archive as a file system."""
    opened = fsspec.open(path)
    fs = _Listed(fo=_inside_of(path, opened.open(), _members(path, opened.fs.ukey(opened.path))))
    fs.of = opened  # keeps it alive; closed together with the file system
    return fs


class _Listed(TarFileSystem):  # type: ignore[misc] # fsspec has no types
    """A tar archive with a known list of members."""

    def _index(self) -> None:
        self.tar.members, self.tar._loaded = self.fo.members, True  # noqa: SLF001 - no public API for it
        super()._index()


@lru_cache(maxsize=16)
def _members(path: str, _version: str) -> list[tarfile.TarInfo]:
    """List the members of an archive, which requires unpacking all of it.

    Raises:
        TraceFormatError: The archive unpacks to more than traces do, or has too many members.
    """
    with fsspec.open(path) as raw:
        inside = _inside_of(path, raw)
        inside.most = max_unpacked_bytes(path) if inside.is_packed else sys.maxsize
        with tarfile.TarFile(fileobj=cast("BinaryIO", inside)) as archive:
            for _ in archive:
                inside.count(MEMBER_COUNTS_BYTES)
            return archive.getmembers()


def _inside_of(path: str, raw: Any, members: Sequence[tarfile.TarInfo] = ()) -> BoundedFile:
    kind = "gzip" if raw.read(2) == GZIP_MAGIC else get_compression(path, "infer")
    raw.seek(0)
    return BoundedFile(compr[kind](raw) if kind else raw, path, bool(kind), members)


def file_bytes(path: str) -> int:
    """Return the size of a file [bytes], or 0 if the size is unknown or the file is missing."""
    try:
        fs, name = located(path)
        return int(fs.size(name) or 0)
    except OSError:
        return 0


def is_remote(path: str) -> bool:
    """Return whether a file, or the archive that contains it, is read over a network."""
    return "://" in path.rpartition("::")[2]


def max_unpacked_bytes(path: str) -> int:
    """Return the maximum unpacked size of a trace [bytes], given its own or its archive's size."""
    return max(ALWAYS_ALLOWED_BYTES, MAX_RATIO * file_bytes(path.rpartition("::")[2]))


def archive_members(path: str) -> list[str]:
    """List the files of a zip or tar archive as URLs; nothing is unpacked to disk.

    Raises:
        TraceFormatError: The archive cannot be read, or unpacks to more than traces do.
    """
    kind = "zip" if path.endswith(".zip") else "tar"
    try:
        fs = _tar(path) if kind == "tar" else fsspec.filesystem(kind, fo=path)
        return [f"{kind}://{name}::{path}" for name in sorted(fs.find(""))]
    except BROKEN_ARCHIVE as error:
        raise TraceFormatError(f"{path!r} is not a readable {kind} archive: {error}.") from error


def open_trace(path: str) -> BinaryIO:
    """Open a trace as a stream of JSON bytes, regardless of the suffix of its name.

    A truncated compressed stream ends at the truncation; see :class:`UnpackedStream`. Reading
    raises a TraceFormatError if the stream unpacks to more than a trace of its size does.

    Raises:
        TraceNotFoundError: The file does not exist, or may not be read.
        TraceFormatError: It is not a file, or its content cannot be a trace.
        ExtraNotInstalledError: The file is compressed with zstd, and no zstd reader is installed.
    """
    stream, magic = _unpacked(path)
    try:
        check_text(path, magic)
    except TraceFormatError:
        stream.close()
        raise
    return stream


def open_any(path: str) -> BinaryIO:
    """Open a file with any content as a stream of unpacked bytes; see :func:`open_trace`."""
    return _unpacked(path)[0]


def _unpacked(path: str) -> tuple[BinaryIO, bytes]:
    """Open a file as a stream of its unpacked bytes; return the stream and its first bytes."""
    stream = _opened(path)
    magic = stream.read(4)
    stream.seek(0)
    for _ in range(MAX_LAYERS):
        if not is_compressed(magic):
            break
        stream = UnpackedStream(stream, magic, path, max_unpacked_bytes(path))
        magic = stream.peek(4)
    return cast("BinaryIO", stream), magic


def _opened(path: str) -> BinaryIO | UnpackedStream:
    if path.startswith(SCHEME):
        return RankStream(open_trace(file_of(path)), path)
    if "::" in path:
        return _member(path)
    try:
        fs, name = located(path)
        refuse_special_file(fs, name, path)
        return cast("BinaryIO", fs.open(name, "rb"))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TraceNotFoundError(f"Cannot open trace {path!r}: {reason}.") from error


def _member(path: str) -> UnpackedStream:
    """Open a member of an archive, which may be anything, such as a device or a broken link."""
    try:
        fs, name = located(path)
        raw = fs.open(name, "rb")
        # Keep a reference: without one, the archive is closed. Most versions of fsspec return None
        # for a member that is not a file, and the assignment then raises.
        raw.archive = fs
    except BROKEN_ARCHIVE as error:
        raise TraceNotFoundError(
            f"Cannot open trace {path!r}: the archive member is not a regular file, but a device, a "
            "broken link, an absolute path, or damaged."
        ) from error
    return UnpackedStream(raw, MEMBER, path, max_unpacked_bytes(path))


def refuse_special_file(fs: Any, name: str, path: str) -> None:
    """Raise for a special file that may never end: a pipe, a socket, a device.

    Raises:
        TraceFormatError: The file is a special file.
        OSError: The file does not exist.
    """
    if isinstance(fs, LocalFileSystem):
        mode = os.stat(name).st_mode  # noqa: PTH116 - a name from fsspec
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise TraceFormatError(
                f"{path!r} is not a regular file: it is a pipe, a socket or a device."
            )


def whole_text(stream: BinaryIO) -> bytes:
    """Read the rest of a stream that :func:`open_trace` opened."""
    return b"".join(iter(lambda: stream.read(BLOCK_BYTES), b""))


def check_text(path: str, magic: bytes) -> None:
    """Raise if the first bytes of a file cannot be the text of a trace.

    Raises:
        TraceFormatError: The bytes cannot be a trace; the message says what they look like.
    """
    foreign = guess_binary(magic) if magic.strip() else None
    if foreign:
        raise TraceFormatError(
            f"{path!r} is not a Kineto trace; it looks like {foreign.looks_like}. {foreign.advice}"
        )
    if magic.startswith(ZIP_MAGIC):
        raise TraceFormatError(f"{path!r} is a zip archive; its name must end in .zip.")
    if is_compressed(magic):
        raise TraceFormatError(
            f"{path!r} has more than {MAX_LAYERS} layers of compression; unpack it first."
        )
    if magic.startswith(UTF16_MARKS) or b"\0" in magic:
        raise TraceFormatError(
            f"{path!r} is not UTF-8 text (it starts with {magic!r}). If it is UTF-16, convert it: "
            "iconv -f UTF-16 -t UTF-8."
        )
