"""Baselines: named runs recorded in a JSON file, inside a store or in a team's shared location."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hta_sql.errors import StoreError
from hta_sql.store.disk.folder import StoreFolder

BASELINES = "baselines.json"
"""Name of the baselines file inside a store."""


@dataclass(frozen=True)
class Baseline:
    """A run recorded as a baseline.

    Attributes:
        name: Name of the baseline.
        store: Path of the run's store relative to the baselines file, or a URL.
        run: Name of the run.
        digest: Content digest of the run; see :func:`hta_sql.comparison.baselines.content_digest`.
    """

    name: str
    store: str
    run: str
    digest: str


def read_baselines(folder: StoreFolder, name: str = BASELINES) -> dict[str, Baseline]:
    """Read a baselines file. Return name ─▶ baseline, or an empty dict if the file does not exist.

    Raises:
        StoreError: The file is not a baselines file.
    """
    try:
        content = json.loads(folder.read(name))
        found = [Baseline(**baseline) for baseline in content["baselines"]]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{folder.path(name)!r} is not a baselines file: {error!r}.") from error
    return {baseline.name: baseline for baseline in found}


def baseline_runs(folder: StoreFolder) -> dict[str, str]:
    """Return the runs of a store that are baselines: run ─▶ baseline name.

    Raises:
        StoreError: The store's baselines file is not valid.
    """
    named = read_baselines(folder).values()
    return {baseline.run: baseline.name for baseline in named if baseline.store == "."}
