"""Whether a folder can be used, with HTA's call."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["OperationOutcome", "is_valid_directory"]


@dataclass
class OperationOutcome:
    """Whether something holds, and if not, why.

    Attributes:
        success: Whether it holds.
        reason: Why not; empty where it holds.
    """

    success: bool
    reason: str


def is_valid_directory(path_to_directory: str, must_be_writable: bool = False) -> OperationOutcome:
    """Say whether a folder is there and can be read.

    Args:
        path_to_directory: The folder.
        must_be_writable: Whether it has to be writable too.
    """
    reason = ""
    if not path_to_directory:
        reason = "The name of the folder is empty."
    elif not os.path.exists(path_to_directory):  # noqa: PTH110 - HTA's parameter is text
        reason = f"{path_to_directory!r} does not exist."
    elif not os.path.isdir(path_to_directory):  # noqa: PTH112 - likewise
        reason = f"{path_to_directory!r} is not a folder."
    elif not os.access(path_to_directory, os.R_OK):
        reason = f"{path_to_directory!r} cannot be read."
    elif must_be_writable and not os.access(path_to_directory, os.W_OK):
        reason = f"{path_to_directory!r} cannot be written."
    return OperationOutcome(not reason, reason)
