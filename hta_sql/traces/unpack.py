"""Unpacks compressed bytes up to the last good byte, reports truncation, and refuses bombs.

At a truncation, the file objects of gzip and isal raise and lose unpacked data that they have not
returned yet: up to a block of good events. Here the good bytes are returned first.
"""

from __future__ import annotations

import lzma
import os
import sys
import tarfile
import zipfile
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, BinaryIO, Literal, cast

from isal import isal_zlib

from hta_sql.closing import Closing
from hta_sql.errors import ExtraNotInstalledError, TraceFormatError

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_MAGICS = (GZIP_MAGIC, ZSTD_MAGIC)
COMPRESSED_SUFFIXES = (".gz", ".zst")
"""Suffixes of compressed traces; the actual compression is detected from the magic number."""

MEMBER = b""
"""Stands in for the magic number of an archive member: the archive unpacks it."""

BROKEN_ARCHIVE = (
    *(OSError, ValueError, LookupError, AttributeError, RuntimeError, EOFError),
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
"""Errors from reading a damaged archive or a member that is not a file.

Such a member may be a device, a broken link, or a link to itself.
"""

SLICE_BYTES = 4 << 10
"""Bytes of gzip data per step; a step unpacks to at most 4 MB, because gzip's limit is 1032:1."""

ZSTD_SLICE_BYTES = 1 << 10
"""Bytes of zstd data per step.

zstd unpacks four bytes to a block of at most 128 KB, so a step gives at most 32 MB. Packed blocks
are usually larger than a step, so an error costs only one block.
"""

MEMBER_BLOCK_BYTES = 256 << 10

BLOCK_COUNTS_BYTES = 1 << 10
"""Minimum size that an unpacked block counts as [bytes]: millions of empty members are a bomb."""

_WITH_GZIP_HEADER = 31
_NEVER = sys.maxsize
_DAMAGED = cast("type[Exception]", isal_zlib.error)


def _is_a_bomb(path: str, max_bytes: int) -> TraceFormatError:
    return TraceFormatError(
        f"{path!r} unpacks to more than {max_bytes >> 20} MB, more than any trace of its "
        "compressed size. If you trust the file, unpack it yourself."
    )


def uncompressed_name(name: str) -> str:
    """Return a file name without its compression suffix."""
    found = [suffix for suffix in COMPRESSED_SUFFIXES if name.endswith(suffix)]
    return name.removesuffix(found[0]) if found else name


class BoundedFile:
    """The file inside a compressed archive, with a limit on the bytes that are read or skipped.

    Attributes:
        most: Maximum bytes to read and skip.
        members: Known members of the archive.
    """

    def __init__(
        self, raw: BinaryIO, path: str, is_packed: bool, members: Sequence[tarfile.TarInfo]
    ) -> None:
        self._raw, self._path, self.is_packed, self.members = raw, path, is_packed, list(members)
        self.most, self._passed = _NEVER, 0
        self.tell, self.seekable, self.close = raw.tell, raw.seekable, raw.close

    def read(self, size: int) -> bytes:
        """Read some bytes."""
        self.count(size)
        return self._raw.read(size)

    def seek(self, position: int) -> int:
        """Seek to a position; everything before it is unpacked."""
        here = self._raw.tell()
        self.count(position - here if position >= here else position)
        return self._raw.seek(position)

    def count(self, passed: int) -> None:
        """Count unpacked bytes.

        Raises:
            TraceFormatError: The limit is exceeded.
        """
        self._passed += passed
        if self._passed > self.most:
            raise _is_a_bomb(self._path, self.most)


def is_compressed(head: bytes) -> bool:
    """Return whether a file that begins with these bytes is unpacked here."""
    return head.startswith(_MAGICS)


class UnpackedStream(Closing):
    """The bytes inside a gzip or zstd stream, or of a member of an archive.

    Args:
        raw: The compressed bytes.
        magic: First bytes of the compressed data.
        path: Name of the file in errors.
        max_bytes: Maximum bytes to unpack: a bomb does not state its size.

    Attributes:
        problem: Why the stream was truncated; None if it was not.
        unread_share: Share of the compressed bytes after the truncation; None if unknown.
    """

    def __init__(
        self, raw: BinaryIO | UnpackedStream, magic: bytes, path: str, max_bytes: int = _NEVER
    ) -> None:
        self.problem: str | None = None
        self.unread_share: float | None = None
        self._raw = raw
        self._magic, self._path, self._max_bytes = magic, path, max_bytes
        self._begin()

    def _begin(self) -> None:
        self._unpacked, self._held = 0, 0
        self._ready: deque[bytes | memoryview] = deque()
        if self._magic == MEMBER:
            self._blocks = self._member()
        elif self._magic == ZSTD_MAGIC:
            self._blocks = _zstd(self._raw, self._path, self)
        else:
            self._blocks = self._gzip()

    def read(self, size: int) -> bytes:
        """Read `size` bytes; fewer only at the end.

        Raises:
            TraceFormatError: The stream unpacks to more than its limit.
        """
        while self._held < size:
            block = next(self._blocks, None)
            if block is None:
                break
            self._unpacked += max(len(block), BLOCK_COUNTS_BYTES)
            if self._unpacked > self._max_bytes:
                raise _is_a_bomb(self._path, self._max_bytes)
            if block:
                self._ready.append(block)
                self._held += len(block)
        return b"".join(self._taken(min(size, self._held)))

    def _taken(self, size: int) -> Iterator[bytes | memoryview]:
        """Yield bytes that are ready, without copying the rest."""
        self._held -= size
        while size:
            block = self._ready.popleft()
            if len(block) > size:
                view = memoryview(block)
                self._ready.appendleft(view[size:])
                block = view[:size]
            size -= len(block)
            yield block

    def peek(self, size: int) -> bytes:
        """Return the next bytes without consuming them."""
        taken = self.read(size)
        self._ready.appendleft(taken)
        self._held += len(taken)
        return taken

    def seek(self, start: Literal[0]) -> None:
        """Restart from the beginning."""
        self._raw.seek(start)
        self._begin()

    def close(self) -> None:
        """Close the compressed stream."""
        self._raw.close()

    def _member(self) -> Iterator[bytes]:
        try:
            while block := self._raw.read(MEMBER_BLOCK_BYTES):
                yield block
        except BROKEN_ARCHIVE as error:
            self.problem = f"the archive is damaged: {error}"

    def _gzip(self) -> Iterator[bytes]:
        done = 0
        try:
            for block in self._members(_NEVER):
                done += len(block)
                yield block
        except _DAMAGED as error:
            self.problem = f"the compressed file is damaged: {error}"
            self.unread_share = _unread_share(self._raw)
            # The failed call lost what it had unpacked: unpack again, byte by byte near the
            # failure.
            self._raw.seek(0)
            yield from _behind(done, self._members(done))

    def _members(self, bytewise_behind: int) -> Iterator[bytes]:
        """Unpack member after member; trailing zeros are padding."""
        decoder: Any = isal_zlib.decompressobj(wbits=_WITH_GZIP_HEADER)
        done = 0
        while packed := self._raw.read(SLICE_BYTES if done < bytewise_behind else 1):
            block = decoder.decompress(packed)
            while decoder.eof:
                done += len(block)
                yield block
                packed = (decoder.unused_data or self._raw.read(SLICE_BYTES)).lstrip(b"\0")
                if not packed:
                    return
                if packed[:2] != GZIP_MAGIC[: len(packed)]:
                    self.problem = "unexpected data follows the compressed data"
                    self.unread_share = _unread_share(self._raw, len(packed))
                    return
                decoder = isal_zlib.decompressobj(wbits=_WITH_GZIP_HEADER)
                block = decoder.decompress(packed)
            done += len(block)
            yield block
        self.problem = "the compressed file breaks off"


def _unread_share(raw: BinaryIO | UnpackedStream, held: int = 0) -> float | None:
    """Return the share of a file after the current position, less what is held in memory [bytes].

    None inside of another stream.
    """
    if isinstance(raw, UnpackedStream):
        return None
    position = raw.tell() - held
    raw.seek(0, os.SEEK_END)
    return 1 - position / raw.tell() if raw.tell() else None


def _behind(position: int, blocks: Iterator[bytes]) -> Iterator[bytes]:
    seen = 0
    with suppress(_DAMAGED):
        for block in blocks:
            seen += len(block)
            yield block[max(0, len(block) - max(0, seen - position)) :]


def _zstd(raw: BinaryIO | UnpackedStream, path: str, stream: UnpackedStream) -> Iterator[bytes]:
    try:
        import zstandard  # noqa: PLC0415 - optional dependency for .zst
    except ImportError as error:
        raise ExtraNotInstalledError(
            f"{path!r} is compressed with zstd. Install the reader: pip install 'hta-sql[zstd]'."
        ) from error
    try:
        yield from _frames(raw, zstandard.ZstdDecompressor(), stream)
    except zstandard.ZstdError as error:
        stream.problem = f"the compressed file is damaged: {error}"
        stream.unread_share = _unread_share(raw)


def _frames(
    raw: BinaryIO | UnpackedStream, decompressor: Any, stream: UnpackedStream
) -> Iterator[bytes]:
    """Unpack frame by frame: zstandard's stream reader cannot distinguish the end from a truncation."""
    decoder = decompressor.decompressobj()
    is_between = True
    while packed := raw.read(ZSTD_SLICE_BYTES):
        while packed:
            block = decoder.decompress(packed)
            is_between, packed = decoder.eof, decoder.unused_data
            if is_between:
                decoder = decompressor.decompressobj()
            yield block
    if not is_between:
        stream.problem = "the compressed file breaks off"
