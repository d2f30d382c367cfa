"""Unpacks compressed bytes to the last good one: a broken stream ends, and says why; a bomb is refused.

The file objects of gzip and isal raise where a stream breaks off, and lose what they had
unpacked but not handed out: up to a block of good events. Here the good bytes come first.
"""

from __future__ import annotations

import lzma
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
COMPRESSED_SUFFIXES = (".gz", ".zst")
"""Suffixes of compressed traces; what a file is compressed with is read from its magic number."""

MEMBER = b""
"""In place of a magic number: a member of an archive, which the archive unpacks."""

BROKEN_ARCHIVE = (
    *(OSError, ValueError, LookupError, AttributeError, RuntimeError, EOFError),
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
)
"""What reading a damaged archive may end with, or a member that is no file: a device, a link that
leads nowhere or to itself."""

SLICE_BYTES = 4 << 10
"""gzip unpacks 1032 to 1 at most, so one slice becomes 4 MB at most."""

ZSTD_SLICE_BYTES = 1 << 10
"""zstd unpacks four bytes to a block of 128 KB at most, so one slice becomes 32 MB at most.
Blocks are larger than that when packed, so an error costs one of them."""

MEMBER_BLOCK_BYTES = 256 << 10

BLOCK_COUNTS_BYTES = 1 << 10
"""What is unpacked counts so much at least: millions of empty members are a bomb, too."""

_WITH_GZIP_HEADER = 31
_NEVER = sys.maxsize
_DAMAGED = cast("type[Exception]", isal_zlib.error)


def _is_a_bomb(path: str, max_bytes: int) -> TraceFormatError:
    return TraceFormatError(
        f"{path!r} unpacks to more than {max_bytes >> 20} MB, which no trace "
        "of its compressed size does. Unpack it yourself if you trust it."
    )


def uncompressed_name(name: str) -> str:
    """Return a file name without the suffix of its compression."""
    found = [suffix for suffix in COMPRESSED_SUFFIXES if name.endswith(suffix)]
    return name.removesuffix(found[0]) if found else name


class BoundedFile:
    """The file inside of a packed archive, in which no more is read and passed over than it may be.

    Attributes:
        most: Bytes to read and to pass over.
        members: What is known to be in it.
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
        """Go to a place; what lies before it is unpacked for it."""
        here = self._raw.tell()
        self.count(position - here if position >= here else position)
        return self._raw.seek(position)

    def count(self, passed: int) -> None:
        """Count what is unpacked.

        Raises:
            TraceFormatError: It is too much.
        """
        self._passed += passed
        if self._passed > self.most:
            raise _is_a_bomb(self._path, self.most)


class UnpackedStream(Closing):
    """The bytes inside a gzip or zstd stream, or of a member of an archive.

    Args:
        raw: The compressed bytes.
        magic: What they begin with.
        path: What errors call the file.
        max_bytes: Unpack no more: a bomb says nothing of its size before.

    Attributes:
        problem: Why the stream ended before its end; None: it did not.
    """

    def __init__(
        self, raw: BinaryIO | UnpackedStream, magic: bytes, path: str, max_bytes: int = _NEVER
    ) -> None:
        self.problem: str | None = None
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
            TraceFormatError: It unpacks to more than it may.
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
        """Take bytes that are ready, without a copy of what is left."""
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
        """Look at the next bytes."""
        taken = self.read(size)
        self._ready.appendleft(taken)
        self._held += len(taken)
        return taken

    def seek(self, start: Literal[0]) -> None:
        """Unpack from the beginning once more."""
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
            # What the failing call had unpacked is lost: once more, byte by byte where it failed.
            self._raw.seek(0)
            yield from _behind(done, self._members(done))

    def _members(self, bytewise_behind: int) -> Iterator[bytes]:
        """Unpack member after member; zeros behind the last are padding."""
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
                    self.problem = "something else follows the compressed data"
                    return
                decoder = isal_zlib.decompressobj(wbits=_WITH_GZIP_HEADER)
                block = decoder.decompress(packed)
            done += len(block)
            yield block
        self.problem = "the compressed file breaks off"


def _behind(position: int, blocks: Iterator[bytes]) -> Iterator[bytes]:
    seen = 0
    with suppress(_DAMAGED):
        for block in blocks:
            seen += len(block)
            yield block[max(0, len(block) - max(0, seen - position)) :]


def _zstd(raw: BinaryIO | UnpackedStream, path: str, stream: UnpackedStream) -> Iterator[bytes]:
    try:
        import zstandard  # noqa: PLC0415 - optional, and only for .zst
    except ImportError as error:
        raise ExtraNotInstalledError(
            f"{path!r} is compressed with zstd. Install the reader: pip install 'hta-sql[zstd]'."
        ) from error
    try:
        yield from _frames(raw, zstandard.ZstdDecompressor(), stream)
    except zstandard.ZstdError as error:
        stream.problem = f"the compressed file is damaged: {error}"


def _frames(
    raw: BinaryIO | UnpackedStream, decompressor: Any, stream: UnpackedStream
) -> Iterator[bytes]:
    """Unpack frame after frame; the stream reader of zstandard does not tell an end from a cut."""
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
