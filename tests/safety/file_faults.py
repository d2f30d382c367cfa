"""Patches for Python's file operations that simulate errors, crashes and power loss.

Within :func:`faults`, operations on the files of a folder are counted. An operation is identified
by its kind and the file name without random parts. The chosen operation raises an error or stops
the writer, as if the process had been killed: nothing is written after it. After a power loss, only
flushed data remains. The contents of a file are flushed by an ``fsync`` of the file, and its name
by an ``fsync`` of its folder.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hta_sql.ingestion import tables
from hta_sql.store.catalog import build, compute
from hta_sql.store.disk import orphaned_files

KINDS = {
    "replace": "rename",
    "rename": "rename",
    "unlink": "unlink",
    "remove": "unlink",
    "mkdir": "mkdir",
    "rmdir": "rmdir",
    "link": "link",
}
"""Function of ``os`` ─▶ kind of operation. Read-only functions are excluded."""

ENGINE = ((tables, "copy_to_parquet"), (build, "_build_of"), (compute, "_computed"))
"""Functions that let the engine write a file, as (module, name)."""


class StoppedError(BaseException):
    """Simulated end of the process, which no ``except Exception`` catches."""


@dataclass
class Faults:
    """The fault to inject, and the operations so far.

    Attributes:
        folder: Folder of the observed files.
        at: Index of the operation with the fault; None: no fault.
        how: ``fail``: the operation raises. ``stop``: neither it nor any later operation takes
            effect. ``torn``: half of its data is written, and no later operation takes effect.
    """

    folder: Path
    at: int | None = None
    how: str = "fail"
    seen: list[str] = field(default_factory=list)
    stopped: bool = False
    flushed: set[int] = field(default_factory=set)
    """Inodes of the files whose contents are on disk."""
    names: dict[str, dict[str, int]] = field(default_factory=dict)
    """Folder ─▶ file names in it that are on disk, with their inodes."""
    _open: dict[int, str] = field(default_factory=dict)
    torn: Path | None = None
    """File of which only half is written."""
    _shadow: Path | None = None

    def before(self, kind: str, path: object) -> None:
        """Count an operation; raise an error or stop the writer if it is the chosen one."""
        name = self.name_of(path)
        if name is None:
            return
        self.tear()
        if self.stopped:
            raise StoppedError
        self.seen.append(f"{kind} {name}")
        if self.at == len(self.seen) - 1:
            if self.how == "stop":
                self.stopped = True
                raise StoppedError
            if self.how == "torn":
                self.torn = Path(str(path))
                return
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))

    def tear(self) -> None:
        """Truncate the torn file to half of its size, and stop all later operations."""
        if self.torn and not self.stopped:
            self.stopped = True
            if self.torn.is_file():
                os.truncate(self.torn, self.torn.stat().st_size // 2)

    def name_of(self, path: object) -> str | None:
        """Return the name of a file without random parts, or None if it is outside the folder."""
        if isinstance(path, int) or path is None:
            path = self._open.get(path) if isinstance(path, int) else None
        if path is None:
            return None
        full = os.path.abspath(os.fspath(path))  # type: ignore[call-overload]  # noqa: PTH100 - no link is followed
        top = str(self.folder)
        if full != top and not full.startswith(f"{top}/"):
            return None
        return without_chance(full[len(top) + 1 :] or ".")

    def begin(self, shadow: Path) -> None:
        """Mark all existing files as flushed, and hard-link them into a shadow folder."""
        self._shadow = shadow
        shadow.mkdir()
        for place, _, files in os.walk(self.folder):
            self.flushed.update(Path(place, name).stat().st_ino for name in files)
            self._settle(Path(place))

    def _settle(self, place: Path) -> None:
        """Record the names in a folder as flushed."""
        assert self._shadow
        self.names[str(place)] = {}
        for path in place.iterdir():
            inode = path.stat().st_ino
            self.names[str(place)][path.name] = inode
            if not path.is_dir() and not (self._shadow / str(inode)).exists():
                os.link(path, self._shadow / str(inode))

    def flush(self, descriptor: int) -> None:
        """Mark the content of a file, or the names in a folder, as flushed."""
        path = self._open.get(descriptor)
        if self._shadow and path and self.name_of(path):
            if Path(path).is_dir():
                self._settle(Path(path))
            else:
                self.flushed.add(os.fstat(descriptor).st_ino)

    def lose_power(self) -> None:
        """Reset the folder to the state that survives a power loss."""
        assert self._shadow
        for place, names in sorted(self.names.items()):
            if not Path(place).is_dir():
                continue
            for path in list(Path(place).iterdir()):
                if path.name not in names:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            for name, inode in names.items():
                self._bring_back(Path(place, name), inode)

    def _bring_back(self, path: Path, inode: int) -> None:
        """Restore the file that survives under a name, empty if its contents were not flushed."""
        assert self._shadow
        kept = self._shadow / str(inode)
        if str(path) in self.names:
            path.mkdir(exist_ok=True)
        elif kept.exists():
            if not (path.exists() and path.stat().st_ino == inode):
                path.unlink(missing_ok=True)
                os.link(kept, path)
            if inode not in self.flushed:
                path.write_bytes(b"")


def without_chance(name: str) -> str:
    """Replace the random parts, table, run and rank in a file name with ``*``."""
    name = re.sub(r"[0-9a-f]{32}|[0-9a-f]{12}(-|(?=\.))", "*", name)
    name = re.sub(r"(run|rank)=\w+", r"\1=*", name)
    return re.sub(r"^tables/\w+", "tables/*", name)


@contextmanager
def faults(folder: Path, at: int | None = None, how: str = "fail") -> Iterator[Faults]:
    """Count the operations on the files of a folder, and inject a fault into one of them."""
    layer = Faults(folder.resolve(), at, "stop" if how == "power" else how)
    if how == "power":
        layer.begin(folder.with_name(f"{folder.name}.shadow"))
    try:
        with ExitStack() as patched:
            for name, kind in KINDS.items():
                patched.enter_context(
                    patch.object(os, name, _counted(layer, getattr(os, name), kind))
                )
            for module, name in ((io, "open"), (builtins, "open")):
                patched.enter_context(patch.object(module, name, _opening(layer, io.open)))
            patched.enter_context(patch.object(os, "open", _os_open(layer, os.open)))
            patched.enter_context(patch.object(os, "fsync", _fsync(layer, os.fsync)))
            # Otherwise it would depend on timing whether an ingest saves its progress.
            patched.enter_context(patch.object(orphaned_files, "SAVE_S", 0))
            for module, name in ENGINE:
                real = getattr(module, name)
                patched.enter_context(patch.object(module, name, _engine(layer, real, name)))
            yield layer
    finally:
        layer.tear()
        if how == "power":
            layer.lose_power()


def _counted(layer: Faults, real: Callable[..., Any], kind: str) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        if args:
            layer.before(kind, args[-1] if kind in ("rename", "link") else args[0])
        return real(*args, **named)

    return call


def _opening(layer: Faults, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(file: Any, mode: str = "r", *args: Any, **named: Any) -> Any:
        layer.before("read" if set(mode) <= set("rbt") else "write", file)
        return real(file, mode, *args, **named)

    return call


def _os_open(layer: Faults, real: Callable[..., int]) -> Callable[..., int]:
    def call(path: Any, flags: int, *args: Any, **named: Any) -> int:
        descriptor = real(path, flags, *args, **named)
        layer._open[descriptor] = os.fspath(path)
        return descriptor

    return call


def _fsync(layer: Faults, real: Callable[[int], None]) -> Callable[[int], None]:
    def call(descriptor: int) -> None:
        layer.before("fsync", descriptor)
        layer.flush(descriptor)

    _ = real  # a test has no data worth flushing to disk
    return call


def _engine(layer: Faults, real: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*args: Any, **named: Any) -> Any:
        layer.before("engine", layer.folder / name.strip("_"))
        if layer.at == len(layer.seen) - 1 and layer.how == "torn":
            layer.torn = next((one for one in args if isinstance(one, Path)), None)
        return real(*args, **named)

    return call
