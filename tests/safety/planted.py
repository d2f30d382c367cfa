"""A store among files, an environment and a socket that no query may read, write or reach."""

from __future__ import annotations

import hashlib
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import duckdb

from hta_sql.errors import QueryError
from hta_sql.store.query.trace_store import TraceStore

WORD = "canary-9917"
"""The word that each planted file contains."""

VARIABLE = "HTA_SQL_PLANTED"
"""An environment variable with that word."""


@dataclass
class Planted:
    """A store with planted files inside and outside.

    Attributes:
        store: Folder of the store.
        outside: Folder next to it.
        server: A listening socket, which nobody may connect to.
    """

    store: Path
    outside: Path
    server: socket.socket

    @classmethod
    def around(cls, store: Path) -> Planted:
        """Plant files in a store and next to it."""
        outside = store.parent / "outside"
        outside.mkdir()
        for folder in (store, outside):
            (folder / "secret.csv").write_text(f"secret\n{WORD}\n")
            (folder / "secret.json").write_text(f'{{"secret": "{WORD}"}}')
            (folder / "secret.txt").write_text(WORD)
        with duckdb.connect(outside / "secret.duckdb") as con:
            con.execute("CREATE TABLE t AS SELECT ? AS secret", [WORD])
        with duckdb.connect() as con:
            con.execute("CREATE TABLE t AS SELECT ? AS secret", [WORD])
            con.sql("FROM t").write_parquet(str(outside / "secret.parquet"))
        server = socket.create_server(("127.0.0.1", 0))
        server.setblocking(False)
        return cls(store, outside, server)

    def addressed(self, query: str) -> str:
        """Replace the folder placeholders in a query."""
        return query.replace("{outside}", str(self.outside)).replace("{store}", str(self.store))

    def paths(self) -> list[str]:
        """Return paths, URLs and names with which functions are called."""
        return [
            *(
                f"{self.outside}/secret.{kind}"
                for kind in ("csv", "json", "txt", "parquet", "duckdb")
            ),
            f"{self.outside}/*",
            f"{self.store}/secret.csv",
            f"{self.store}/manifest.json",
            f"{self.store}/tables/../secret.csv",
            f"{self.store}/tables/stolen",
            f"http://127.0.0.1:{self.server.getsockname()[1]}/secret.csv",
            f"file://{self.outside}/secret.csv",
            f"FROM read_text('{self.outside}/secret.csv')",
            f"COPY (SELECT 1) TO '{self.store}/tables/stolen'",
            VARIABLE,
        ]

    def files(self) -> dict[Path, str]:
        """Return the checksums of all files in and next to the store."""
        found = [path for path in self.store.parent.rglob("*") if path.is_file()]
        return {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in found}

    def is_connected(self) -> bool:
        """Return whether anybody connected to the server."""
        with suppress(BlockingIOError):
            self.server.accept()
            return True
        return False


def tell(store: TraceStore, query: str) -> tuple[bool, str]:
    """Return whether a query was answered, and its rows or its error message as text."""
    try:
        return True, repr(store.sql(query, most_rows=200).rows())
    except QueryError as error:
        return False, str(error)
