"""Output of a rewritten trace: written to a temporary file, then moved atomically."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import fsspec
from fsspec.implementations.local import LocalFileSystem
from isal import igzip

from hta_sql.errors import TraceError
from hta_sql.exhausted import disk_reason, disk_refusal
from hta_sql.machine import temporary_folder
from hta_sql.traces.unpack import uncompressed_name
from hta_sql.traces.writing import made_folder, replacing

COMPRESSION = 2
"""igzip level (0 to 3): a third smaller than level 0, at half the speed of plain copying."""

_ELSEWHERE = "Choose another folder"


def output_path(
    source: str, *, prefix: str = "", suffix: str = "", folder: str | os.PathLike[str] | None = None
) -> str:
    """Return the output path of a rewritten trace: next to its source, with the name HTA uses.

    Args:
        source: Trace; for a member of an archive, the output is next to the archive.
        prefix: Prefix of the file name, such as ``overlaid_``.
        suffix: Suffix of the stem, such as ``_with_counters``.
        folder: Folder to use instead of the source's.

    Returns:
        A path that ends in ``.json.gz``; the output is gzip even if the source is not.
    """
    member, _, archive = source.partition("::")
    name = member.removeprefix("zip://").removeprefix("tar://").rpartition("/")[2]
    beside = archive or source
    head, slash, _ = beside.rpartition("/")
    stem = uncompressed_name(name).removesuffix(".json")
    target = f"{prefix}{stem}{suffix}.json.gz"
    return str(Path(folder, target)) if folder is not None else f"{head}{slash}{target}"


@contextmanager
def trace_output(destination: str) -> Iterator[BinaryIO]:
    """Open a trace for writing; move it into place when the block ends, or delete it on failure.

    The file is gzip if the name ends in ``.gz``; equal content gives equal bytes.

    Raises:
        TraceError: The file cannot be written.
    """
    fs, name = fsspec.url_to_fs(destination)
    try:
        if isinstance(fs, LocalFileSystem):
            path = Path(name)
            with (
                made_folder(path.parent),
                replacing(path) as partial,
                _opened(partial, name) as out,
            ):
                yield out
            return
        with temporary_folder() as folder:
            whole = Path(folder, "trace")
            with _opened(whole, name) as out:
                yield out
            fs.put_file(str(whole), name)
    except TraceError:  # raised while reading in the block: a missing trace is also an OSError
        raise
    except OSError as error:
        number = disk_refusal(error)
        what, remedy = disk_reason(number) if number else (error.strerror or error, _ELSEWHERE)
        raise TraceError(f"Cannot write {destination!r}: {what}. {remedy}.") from error


@contextmanager
def _opened(path: Path, name: str) -> Iterator[BinaryIO]:
    with path.open("wb") as raw:
        if name.endswith(".gz"):
            with igzip.IGzipFile("", "wb", COMPRESSION, raw, mtime=0) as packed:  # type: ignore[no-untyped-call]
                yield cast("BinaryIO", packed)
        else:
            yield raw
