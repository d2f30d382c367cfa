"""Finds the files that describe compiled kernels, and assigns them to traces."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hta_sql.ingestion.captures import folder_of
from hta_sql.ingestion.listing import split_by_name
from hta_sql.ingestion.trace_file import TraceFile
from hta_sql.traces.kernel_information import KERNEL_INFORMATION_NAME


def split_kernel_files(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Separate files about compiled kernels from other files by name.

    Returns:
        The paths of the other files, and the paths of files about kernels. Without any other file,
        the files about kernels are returned as the other files.
    """
    traces, kernels = split_by_name(paths, KERNEL_INFORMATION_NAME)
    return (traces, kernels) if traces else (kernels, [])


def with_kernel_files(files: list[TraceFile], kernels: list[str]) -> list[TraceFile]:
    """Assign to each trace the files about the kernels that its job compiled.

    A file belongs to the traces in its folder or, if it contains no traces, in the nearest folder
    above with traces. Other files belong to all traces, because the ranks of a job compile the same
    model.
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
    """Return the nearest folder in ``folders`` (the folder itself or a parent), or None."""
    while folder:
        if folder in folders:
            return folder
        folder = folder_of(folder)
    return None
