"""The folder of a store, local or at an fsspec URL: read, replace in one step, list, remove.

A local file is written beside its place, flushed to the disk and moved there. An object storage
shows an object when all of it has arrived, so that a plain upload does the same.
"""

from __future__ import annotations

import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from hta_sql.errors import StoreError
from hta_sql.store.disk.integrity import digest_of_stream, file_digest
from hta_sql.traces.names import is_utf8, path_text
from hta_sql.traces.writing import make_folder, replacing, sync_all

_URL = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?=[^/])")
"""Also with one slash, which is what a ``pathlib.Path`` makes of a URL."""


class StoreFolder(ABC):
    """Where a store is; names are relative to it, with slashes."""

    root: str
    """Absolute path or URL, without a slash at its end."""

    local: Path | None
    """The folder, where it is on this machine."""

    def path(self, name: str) -> str:
        """Return the absolute path or URL of a file."""
        return f"{self.root}/{name}"

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            FileNotFoundError: There is none.
        """

    @abstractmethod
    def replace(self, name: str, content: bytes) -> None:
        """Write a file in one step, durable before it is visible."""

    @abstractmethod
    def put(self, source: Path, name: str) -> None:
        """Copy a local file to its place in one step, durable before it is visible."""

    @abstractmethod
    def copy(self, source: str, target: str) -> None:
        """Give a file a second name: another link to it, or a copy where there are none."""

    @abstractmethod
    def files(self, folder: str) -> list[str]:
        """List the files below a folder, sorted; none where there is no such folder."""

    @abstractmethod
    def sizes(self, names: Collection[str]) -> dict[str, int]:
        """Look up the sizes of some files [bytes]; those that are not there have none."""

    @abstractmethod
    def digest(self, name: str) -> str:
        """Compute the SHA-256 of a file.

        Raises:
            FileNotFoundError: There is none.
        """

    def missing(self, names: Collection[str]) -> set[str]:
        """Find those of some files that are not there."""
        return set(names).difference(self.sizes(names))

    @abstractmethod
    def remove(self, names: list[str]) -> None:
        """Delete files; those that are gone already do not matter."""

    @abstractmethod
    def remove_empty(self, folder: str) -> None:
        """Delete a folder and those in it, as far as there is no file in them."""

    @abstractmethod
    def settle(self, names: Iterable[str]) -> None:
        """Make sure that the folders of files are on the disk, as the files are."""

    def filesystem(self) -> Any:
        """Return what the engine has to know to read here; None where it can do so itself."""
        return None

    def spellings(self) -> list[str]:
        """List the ways in which the engine may write the root."""
        return [self.root]


class LocalFolder(StoreFolder):
    """A store on this machine, or on what is mounted here."""

    def __init__(self, path: Path) -> None:
        self.local: Path = path
        self.root = path.as_posix()

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return (self.local / name).read_bytes()

    def replace(self, name: str, content: bytes) -> None:
        """Write a file in one step, durable before it is visible."""
        target = self.local / name
        make_folder(target.parent)
        with replacing(target) as partial:
            partial.write_bytes(content)

    def put(self, source: Path, name: str) -> None:
        """Copy a local file to its place in one step, durable before it is visible."""
        make_folder((self.local / name).parent)
        with replacing(self.local / name) as partial:
            shutil.copyfile(source, partial)

    def copy(self, source: str, target: str) -> None:
        """Give a file a second name: another link to it, or a copy where there are none."""
        make_folder((self.local / target).parent)
        try:
            os.link(self.local / source, self.local / target)
        except OSError:
            self.put(self.local / source, target)

    def files(self, folder: str) -> list[str]:
        """List the files below a folder, sorted; none where there is no such folder."""
        top = self.local / folder
        found = [Path(place, name) for place, _, names in os.walk(top) for name in names]
        return sorted(path.relative_to(self.local).as_posix() for path in found)

    def sizes(self, names: Collection[str]) -> dict[str, int]:
        """Look up the sizes of some files [bytes]; those that are not there have none."""
        found = {}
        for name in names:
            with suppress(FileNotFoundError, NotADirectoryError):
                found[name] = os.stat(f"{self.root}/{name}").st_size  # noqa: PTH116 - 24,000 of them
        return found

    def digest(self, name: str) -> str:
        """Compute the SHA-256 of a file."""
        return file_digest(self.local / name)

    def remove(self, names: list[str]) -> None:
        """Delete files; those that are gone already do not matter."""
        for name in names:
            (self.local / name).unlink(missing_ok=True)

    def remove_empty(self, folder: str) -> None:
        """Delete a folder and those in it, as far as there is no file in them."""
        for place, _, _ in os.walk(self.local / folder, topdown=False):
            with suppress(OSError):
                os.rmdir(place)  # noqa: PTH106 - as os.walk gives it

    def settle(self, names: Iterable[str]) -> None:
        """Flush the folders above the files, each once."""
        above = {parent for name in names for parent in PurePosixPath(name).parents}
        sync_all(self.local / folder for folder in above)


class RemoteFolder(StoreFolder):
    """A store on an object storage, or whatever else fsspec knows."""

    local = None

    def __init__(self, url: str) -> None:
        import fsspec  # noqa: PLC0415 - a store on this machine does without

        self._fs, self._top = fsspec.url_to_fs(url)
        self._top = str(self._top).rstrip("/")
        self.root = url.rstrip("/")

    def _ask(self, what: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Ask the file system; what its client raises of its own becomes an error of the system."""
        try:
            return what(*given, **named)
        except (OSError, TypeError, ValueError, NotImplementedError):
            raise
        except Exception as error:  # as botocore's, where there is no network
            raise OSError(f"The storage of {self.root!r} does not answer: {error}") from error

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return bytes(self._ask(self._fs.cat_file, f"{self._top}/{name}"))

    def replace(self, name: str, content: bytes) -> None:
        """Write a file in one step."""
        self._ask(self._fs.pipe_file, f"{self._top}/{name}", content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless it is there; returns whether it was written.

        Of two that do so at once only one succeeds where the file system can create exclusively
        (S3, Google, Azure, memory); elsewhere the moment between looking and writing is open.
        """
        path = f"{self._top}/{name}"
        for is_last in (False, True):
            try:
                self._ask(self._fs.pipe_file, path, content, mode="create")
            except FileExistsError:
                break  # by us, perhaps: by a request whose answer was lost, so that it was repeated
            except (OSError, TypeError, ValueError, NotImplementedError):
                self._fs.invalidate_cache()
                if self._ask(self._fs.exists, path):
                    break
                if is_last:  # it cannot; else it may have failed for once
                    self._ask(self._fs.pipe_file, path, content)
            else:
                break
        try:
            return self.read(name) == content
        except FileNotFoundError:
            return False

    def put(self, source: Path, name: str) -> None:
        """Upload a local file."""
        self._ask(self._fs.put_file, str(source), f"{self._top}/{name}")

    def copy(self, source: str, target: str) -> None:
        """Copy an object."""
        self._ask(self._fs.cp_file, f"{self._top}/{source}", f"{self._top}/{target}")

    def files(self, folder: str) -> list[str]:
        """List the files below a folder, sorted; none where there is no such folder."""
        # Another process may have written since this one listed.
        self._fs.invalidate_cache()
        found = self._ask(self._fs.find, f"{self._top}/{folder}")
        return sorted(str(path)[len(self._top) + 1 :] for path in found)

    def sizes(self, names: Collection[str]) -> dict[str, int]:
        """Look up the sizes of some files [bytes], with one listing."""
        self._fs.invalidate_cache()
        found: dict[str, int] = {}
        for folder in {name.partition("/")[0] for name in names}:
            listed = self._ask(self._fs.find, f"{self._top}/{folder}", detail=True)
            found |= {str(path)[len(self._top) + 1 :]: at["size"] for path, at in listed.items()}
        return {name: found[name] for name in names if name in found}

    def digest(self, name: str) -> str:
        """Compute the SHA-256 of an object."""
        return str(self._ask(self._digest, f"{self._top}/{name}"))

    def _digest(self, path: str) -> str:
        with self._fs.open(path, block_size=8 << 20) as file:
            return digest_of_stream(file)

    def remove(self, names: list[str]) -> None:
        """Delete files; those that are gone already do not matter."""
        if names:
            self._ask(self._fs.rm, [f"{self._top}/{name}" for name in names])

    def remove_empty(self, folder: str) -> None:
        """Object storages have no folders."""

    def settle(self, names: Iterable[str]) -> None:
        """Object storages have no folders."""

    def filesystem(self) -> Any:
        """Return the fsspec file system, for ``register_filesystem``."""
        return self._fs

    def spellings(self) -> list[str]:
        """List the ways in which the engine may write the root."""
        return sorted({self.root, str(self._fs.unstrip_protocol(self._top))})


def store_folder(path: str | os.PathLike[str] | StoreFolder) -> StoreFolder:
    """Tell a URL from a local path.

    Raises:
        StoreError: The path is not UTF-8, so that the engine cannot open it.
    """
    if isinstance(path, StoreFolder):
        return path
    text = os.fspath(path)
    match = _URL.match(text)
    if match and match.group(1) not in ("file", "local"):
        return RemoteFolder(f"{match.group(1)}://{text[match.end() :]}")
    local = Path(text.removeprefix("file://")).resolve()
    if not is_utf8(str(local)):
        raise StoreError(
            f"The path of a store must be UTF-8: {path_text(str(local))!r}. Choose another one."
        )
    return LocalFolder(local)
