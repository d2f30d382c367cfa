"""The folder of a store, local or at an fsspec URL: read, replace atomically, list, remove.

A local file is written to a temporary file next to its target, fsynced and renamed. Object storage
exposes an object only after its upload is complete, so a plain upload is atomic as well.
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
from hta_sql.store.disk.digests import digest_of_stream, file_digest
from hta_sql.traces.names import is_utf8, path_text
from hta_sql.traces.writing import make_folder, replacing, sync_all

_URL = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):/{1,2}(?=[^/])")
"""Also matches a single slash, because ``pathlib.Path`` collapses the two slashes of a URL."""


class StoreFolder(ABC):
    """The folder of a store. File names are relative to it and use slashes."""

    root: str
    """Absolute path or URL, without a trailing slash."""

    local: Path | None
    """The local folder; None for a URL."""

    def path(self, name: str) -> str:
        """Return the absolute path or URL of a file."""
        return f"{self.root}/{name}"

    @abstractmethod
    def read(self, name: str) -> bytes:
        """Return the content of a file.

        Raises:
            FileNotFoundError: The file does not exist.
        """

    @abstractmethod
    def replace(self, name: str, content: bytes) -> None:
        """Write a file atomically; it is durable before it is visible."""

    @abstractmethod
    def put(self, source: Path, name: str) -> None:
        """Copy a local file into the store atomically; it is durable before it is visible."""

    @abstractmethod
    def copy(self, source: str, target: str) -> None:
        """Hard-link a file under a second name, or copy it if links are not supported."""

    @abstractmethod
    def files(self, folder: str) -> list[str]:
        """List the files below a folder, sorted; empty if the folder does not exist."""

    @abstractmethod
    def sizes(self, names: Collection[str]) -> dict[str, int]:
        """Return the sizes of files [bytes]; missing files are omitted."""

    @abstractmethod
    def digest(self, name: str) -> str:
        """Compute the SHA-256 of a file.

        Raises:
            FileNotFoundError: The file does not exist.
        """

    @abstractmethod
    def remove(self, names: list[str]) -> None:
        """Delete files; missing files are ignored."""

    @abstractmethod
    def remove_empty(self, folder: str) -> None:
        """Delete a folder and its subfolders if they contain no files."""

    @abstractmethod
    def settle(self, names: Iterable[str]) -> None:
        """Fsync the folders that contain the files."""

    def filesystem(self) -> Any:
        """Return the fsspec file system that DuckDB needs for the store; None for local files."""
        return None

    def spellings(self) -> list[str]:
        """List the spellings of the root that DuckDB may use in paths."""
        return [self.root]


class LocalFolder(StoreFolder):
    """A store on a local or mounted file system."""

    def __init__(self, path: Path) -> None:
        self.local: Path = path
        self.root = path.as_posix()

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return (self.local / name).read_bytes()

    def replace(self, name: str, content: bytes) -> None:
        """Write a file atomically; it is durable before it is visible."""
        target = self.local / name
        make_folder(target.parent)
        with replacing(target) as partial:
            partial.write_bytes(content)

    def put(self, source: Path, name: str) -> None:
        """Copy a local file into the store atomically; it is durable before it is visible."""
        make_folder((self.local / name).parent)
        with replacing(self.local / name) as partial:
            shutil.copyfile(source, partial)

    def copy(self, source: str, target: str) -> None:
        """Hard-link a file under a second name, or copy it if links are not supported."""
        make_folder((self.local / target).parent)
        try:
            os.link(self.local / source, self.local / target)
        except OSError:
            self.put(self.local / source, target)

    def files(self, folder: str) -> list[str]:
        """List the files below a folder, sorted; empty if the folder does not exist."""
        # Strings, because a store of 2,000 runs has 24,000 files, and each ingest lists them.
        top = f"{self.root}/{folder}" if folder else self.root
        found = (f"{place}/{name}" for place, _, names in os.walk(top) for name in names)
        return sorted(name[len(self.root) + 1 :].replace(os.sep, "/") for name in found)

    def sizes(self, names: Collection[str]) -> dict[str, int]:
        """Return the sizes of files [bytes]; missing files are omitted."""
        found = {}
        for name in names:
            with suppress(FileNotFoundError, NotADirectoryError):
                found[name] = os.stat(f"{self.root}/{name}").st_size  # noqa: PTH116 - called for up to 24,000 files
        return found

    def digest(self, name: str) -> str:
        """Compute the SHA-256 of a file."""
        return file_digest(self.local / name)

    def remove(self, names: list[str]) -> None:
        """Delete files; missing files are ignored."""
        for name in names:
            (self.local / name).unlink(missing_ok=True)

    def remove_empty(self, folder: str) -> None:
        """Delete a folder and its subfolders if they contain no files."""
        for place, _, _ in os.walk(self.local / folder, topdown=False):
            with suppress(OSError):
                os.rmdir(place)  # noqa: PTH106 - os.walk yields strings

    def settle(self, names: Iterable[str]) -> None:
        """Fsync each folder above the files once."""
        above = {parent for name in names for parent in PurePosixPath(name).parents}
        sync_all(self.local / folder for folder in above)


class RemoteFolder(StoreFolder):
    """A store in object storage, or on any other remote file system that fsspec supports."""

    local = None

    def __init__(self, url: str) -> None:
        import fsspec  # noqa: PLC0415 - not needed for a local store

        self._fs, self._top = fsspec.url_to_fs(url)
        self._top = str(self._top).rstrip("/")
        self.root = url.rstrip("/")

    def _ask(self, what: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """Call the file system and convert client-specific exceptions to OSError."""
        try:
            return what(*given, **named)
        except (OSError, TypeError, ValueError, NotImplementedError):
            raise
        except Exception as error:  # such as botocore's exceptions without a network
            raise OSError(
                f"The storage backend for {self.root!r} is not responding: {error}"
            ) from error

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        return bytes(self._ask(self._fs.cat_file, f"{self._top}/{name}"))

    def replace(self, name: str, content: bytes) -> None:
        """Write a file atomically."""
        self._ask(self._fs.pipe_file, f"{self._top}/{name}", content)

    def create(self, name: str, content: bytes) -> bool:
        """Write a file unless it exists; return whether it was written.

        If two writers race, only one succeeds, provided that the file system supports exclusive
        creation (S3, Google, Azure, memory). Otherwise there is a race between the existence check
        and the write.
        """
        path = f"{self._top}/{name}"
        for is_last in (False, True):
            try:
                self._ask(self._fs.pipe_file, path, content, mode="create")
            except FileExistsError:
                break  # possibly created by our own request, retried after its response was lost
            except (OSError, TypeError, ValueError, NotImplementedError):
                self._fs.invalidate_cache()
                if self._ask(self._fs.exists, path):
                    break
                if is_last:  # exclusive creation is unsupported, or failed twice
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
        """List the files below a folder, sorted; empty if the folder does not exist."""
        # Another process may have written since the cached listing.
        self._fs.invalidate_cache()
        found = self._ask(self._fs.find, f"{self._top}/{folder}")
        return sorted(str(path)[len(self._top) + 1 :] for path in found)

    def sizes(self, names: Collection[str]) -> dict[str, int]:
        """Return the sizes of files [bytes], using one listing per top-level folder."""
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
        """Delete files; missing files are ignored."""
        if names:
            self._ask(self._fs.rm, [f"{self._top}/{name}" for name in names])

    def remove_empty(self, folder: str) -> None:
        """Do nothing: object storage has no folders."""

    def settle(self, names: Iterable[str]) -> None:
        """Do nothing: object storage has no folders."""

    def filesystem(self) -> Any:
        """Return the fsspec file system, for ``register_filesystem``."""
        return self._fs

    def spellings(self) -> list[str]:
        """List the spellings of the root that DuckDB may use in paths."""
        return sorted({self.root, str(self._fs.unstrip_protocol(self._top))})


CUT_NAMES = "?" if os.name == "nt" else "?\\"
"""Characters in the name of a file at which DuckDB takes the rest for something else."""


def store_folder(path: str | os.PathLike[str] | StoreFolder) -> StoreFolder:
    """Return the store folder for a local path or a URL.

    Raises:
        StoreError: The path is not UTF-8, or contains a character at which DuckDB cuts a name, so
            DuckDB cannot open it.
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
            f"The path of a store must be UTF-8: {path_text(str(local))!r}. Choose another path."
        )
    if cut := next((c for c in CUT_NAMES if c in str(local)), None):
        raise StoreError(
            f"The path of a store must not contain {cut!r}, at which DuckDB cuts a name: {str(local)!r}. "
            "Choose another path."
        )
    return LocalFolder(local)
