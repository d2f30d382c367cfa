"""Runs by a name, as a file says them: in a store, or wherever a team keeps it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hta_sql.errors import StoreError
from hta_sql.store.disk.folder import StoreFolder

BASELINES = "baselines.json"
"""The file of a store."""


@dataclass(frozen=True)
class Baseline:
    """A run by a name.

    Attributes:
        name: The name.
        store: Path of its store, relative to the file, or URL.
        run: The run.
        digest: Of its content; see :func:`hta_sql.exports.baselines.content_digest`.
    """

    name: str
    store: str
    run: str
    digest: str


def read_baselines(folder: StoreFolder, name: str = BASELINES) -> dict[str, Baseline]:
    """List the baselines of a file by name; none where there is no file.

    Raises:
        StoreError: It is not such a file.
    """
    try:
        content = json.loads(folder.read(name))
        found = [Baseline(**baseline) for baseline in content["baselines"]]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder.path(name)!r} is not a file of baselines: {error!r}.") from error
    return {baseline.name: baseline for baseline in found}


def baseline_runs(folder: StoreFolder) -> dict[str, str]:
    """List the runs of a store that its own file gives a name, with that.

    Raises:
        StoreError: It is not such a file.
    """
    named = read_baselines(folder).values()
    return {baseline.run: baseline.name for baseline in named if baseline.store == "."}
