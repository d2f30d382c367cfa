"""Write the rows of all pinned answers: ``python tests/pinned/rows.py FOLDER PLACE ...``.

Run as a script, so that another tree on ``PYTHONPATH`` provides the package, the SQL files and the
jobs. tests/pinned/changed.py compares the rows of two trees.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.ipc

from tests.pinned.answers import opened, queries_of, write_runs
from tests.pinned.jobs import make_catalog


def main(folder: Path, places: list[str]) -> None:
    """Write a file per answer, with the query in the metadata of its schema."""
    folder.mkdir(parents=True, exist_ok=True)
    for place in places:
        with tempfile.TemporaryDirectory() as top:
            make_catalog(Path(top), write_runs(place, Path(top, "traces")))
            with opened(Path(top)) as con:
                for number, query in enumerate(_queries(place)):
                    table = con.sql(query).to_arrow_table()
                    table = table.replace_schema_metadata({"query": query})
                    path = folder / f"{place}-{number}.arrow"
                    with (
                        pa.OSFile(str(path), "wb") as file,
                        pa.ipc.new_file(file, table.schema) as to,
                    ):
                        to.write_table(table)


def _queries(place: str) -> list[str]:
    return [query for queries in queries_of(place).values() for query in queries]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
