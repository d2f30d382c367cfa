"""Which files describe compiled kernels, and which traces they belong to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hta_sql.ingestion.captures import folder_of
from hta_sql.ingestion.listing import split_by_name
from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.traces.kernel_information import KERNEL_INFORMATION_NAME


def split_kernel_files(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Separate the paths of files about compiled kernels from the others by name.

    Returns:
        The other paths, and those of the files about kernels; files without any trace are among the others.
    """
    traces, kernels = split_by_name(paths, KERNEL_INFORMATION_NAME)
    return (traces, kernels) if traces else (kernels, [])


def with_kernel_files(files: list[TraceFile], kernels: list[str]) -> list[TraceFile]:
    """Give each trace the files about the kernels that its job compiled.

    A file belongs to the traces of its folder or, if that has none, of the nearest folder above that has some. Other
    files belong to all traces: the ranks of a job compile the same model.
    """
    if not kernels:
        return files
    folders = {folder_of(file.path) for file in files}
    owners = {path: _nearest(folder_of(path), folders) for path in kernels}
    return [
        replace(
            file,
            kernel_files=tuple(
                path for path in kernels if owners[path] in (None, folder_of(file.path))
            ),
        )
        for file in files
    ]


def _nearest(folder: str, folders: set[str]) -> str | None:
    """Return the folder itself, or the nearest one above it, that is one of some folders."""
    while folder:
        if folder in folders:
            return folder
        folder = folder_of(folder)
    return None
