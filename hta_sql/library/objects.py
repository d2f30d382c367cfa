"""Finds and parses the files under sql/: names, parameters, columns and documentation.

Names, types and defaults come from the DDL; the comments add descriptions and units.
:mod:`hta_sql.library.rules` checks that both agree with the engine. User analyses are added by
:mod:`hta_sql.library.user_analyses`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

from hta_sql.errors import AnalysisNotFoundError, LibraryError
from hta_sql.library.declared import Column, Parameter, columns_in, comments_at, parameters_in
from hta_sql.library.header import CHART, REPORT, header_of
from hta_sql.library.sql_files import Columns, sql_root
from hta_sql.library.suggestions import suggested

_MACRO = re.compile(
    r"^CREATE OR REPLACE MACRO (?:lib\.|derived\.)?(\w+)\(\n(.*?)^\) AS( TABLE)?\n",
    re.MULTILINE | re.DOTALL,
)
_VIEW = re.compile(r"^CREATE OR REPLACE VIEW (\w+) AS\n", re.MULTILINE)
_CALLED = re.compile(r"\blib\.(\w+)\(")
_COMMENT_LINE = re.compile(r"^[ \t]*--.*", re.MULTILINE)
_WORD = re.compile(r"\w+")
_VERSION = re.compile(r"^(.*)_v(\d+)$")


@dataclass(frozen=True)
class SqlObject:
    """One .sql file: a table view, a shared macro or an analysis; it is parsed on demand.

    A scalar macro has one column, its value, under its own name.
    """

    path: Path
    name: str
    text: str
    places: tuple[int, int, int]
    """Offsets in the text: start and end of the parameters, start of the body."""
    is_scalar: bool = False

    @cached_property
    def _header(self) -> tuple[list[str], dict[str, str]]:
        """Prose lines and facts of the header."""
        return header_of(comments_at(self.text, 0))

    @property
    def facts(self) -> dict[str, str]:
        """Facts of the header by name: Status, Since, Needs ..."""
        return self._header[1]

    @property
    def summary(self) -> str:
        """The first paragraph of the header."""
        prose = self._header[0]
        return " ".join(prose[: prose.index("") if "" in prose else len(prose)])

    @property
    def description(self) -> str:
        """The paragraphs of the header after the first."""
        prose = self._header[0]
        return "\n".join(prose[prose.index("") :]).strip() if "" in prose else ""

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters of the object.

        Raises:
            LibraryError: A parameter line does not have the required form.
        """
        return tuple(parameters_in(self.path, self.text, self.places))

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns of the result."""
        return tuple(columns_in(self.name, comments_at(self.text, self.places[2])))

    @cached_property
    def words(self) -> frozenset[str]:
        """Words of its SQL, without comments."""
        return frozenset(_WORD.findall(_COMMENT_LINE.sub("", self.text)))

    @cached_property
    def base_name(self) -> str:
        """The name without its version."""
        match = _VERSION.match(self.name)
        return match.group(1) if match else self.name

    @cached_property
    def version(self) -> int | None:
        """The version in the name."""
        match = _VERSION.match(self.name)
        return int(match.group(2)) if match else None

    @property
    def title(self) -> str:
        """Title of the object; derived from its name if the header has none."""
        return self.facts.get("Title") or self.base_name.replace("_", " ").capitalize()

    @property
    def topic(self) -> str:
        """Name of its folder."""
        return self.path.parent.name

    @property
    def status(self) -> str:
        """Stable or experimental."""
        return self.facts.get("Status", "stable")

    @property
    def is_macro(self) -> bool:
        """Whether it is a macro of the schema lib: a file in lib/ or in one of its topics."""
        folder, topic = self.path.parts[-3:-1]
        return topic == "lib" or (folder == "lib" and self.version is None)

    @property
    def report(self) -> list[str]:
        """Parts of the header's line about the report section: :data:`REPORT`."""
        line = self.facts.get("Report")
        return line.split("; ") if line else []

    @property
    def shown(self) -> list[str]:
        """The columns that answer the question, in reading order: ``Shown: time_ns, name``.

        A terminal too narrow for all columns shows these. Empty if the header has no such line.
        """
        line = self.facts.get("Shown")
        return line.split(", ") if line else []

    @property
    def needed(self) -> tuple[str, str]:
        """A column, and the sentence for a reader if it is NULL in every row; empty if none."""
        found = (REPORT.fullmatch(word) for word in self.report)
        stated = (match for match in found if match and match["column"])
        return next(((match["column"], match["sentence"]) for match in stated), ("", ""))

    @property
    def full_description(self) -> str:
        """Summary and description, as published in the catalog."""
        return f"{self.summary}\n\n{self.description}".strip()

    def _repr_html_(self) -> str:
        from hta_sql.library.markup import object_markup  # noqa: PLC0415 - needed only in notebooks

        tables: dict[tuple[str, ...], Sequence[tuple[str | None, ...]]] = {
            ("parameter", "type", "default", "meaning"): [
                (p.name, p.type, p.default, p.doc) for p in self.parameters
            ],
            ("column", "type", "unit", "meaning"): [
                (c.name, c.type, c.unit, c.doc) for c in self.columns
            ],
        }
        hidden = ("Title", "Report", "Shown", "Also", CHART)
        facts = {key: text for key, text in self.facts.items() if key not in hidden}
        heading = f"{self.title} ({self.name})" if self.version else self.name
        return object_markup(heading, self.full_description, facts, tables, self.text)


@dataclass(frozen=True, eq=False)
class Library:
    """All of sql/ except ingest. Compared by identity: parsing again gives a different library."""

    tables: tuple[SqlObject, ...]
    macros: tuple[SqlObject, ...]
    analyses: tuple[SqlObject, ...]
    derived: tuple[SqlObject, ...] = ()
    """Macros that compute derived tables, in dependency order."""
    shipped: Library | None = None
    """The library that this one extends; None if it extends none."""

    @property
    def user_library(self) -> Library:
        """Return only the objects that are not shipped."""
        known = {about.path for about in (*self.base.macros, *self.base.analyses)}
        return Library(
            tables=(),
            macros=tuple(about for about in self.macros if about.path not in known),
            analyses=tuple(about for about in self.analyses if about.path not in known),
        )

    @property
    def base(self) -> Library:
        """Return the library that this one extends, or itself."""
        return self.shipped or self

    @cached_property
    def macros_in_order(self) -> tuple[SqlObject, ...]:
        """The macros in dependency order: the engine binds a macro when it is created."""
        return _in_order(self.macros)

    def derived_columns(self) -> Columns:
        """Return the columns of the derived tables, as documented by their views."""
        names = {about.base_name for about in self.derived}
        return {
            table.name: {column.name: column.type for column in table.columns}
            for table in self.tables
            if table.name in names
        }

    def reads_derived(self, about: SqlObject) -> bool:
        """Return whether an object reads derived tables, directly or through its dependencies."""
        if about.path not in self._reads_derived:
            reads = any(one in self.derived for one in self.stands_on(about))
            self._reads_derived[about.path] = reads
        return self._reads_derived[about.path]

    def asks_derived(self, query: str) -> bool:
        """Return whether a query names an object that reads derived tables."""
        return any(map(self.reads_derived, map(self._named.__getitem__, self.names_in(query))))

    def derived_in(self, query: str) -> set[str]:
        """Return the derived tables that a query may read, judging by the words in its text."""
        named = map(self._named.__getitem__, self.names_in(query))
        used = {one.path for about in named for one in self.stands_on(about)}
        return {about.base_name for about in self.derived if about.path in used}

    def names_in(self, query: str) -> set[str]:
        """Return the words of a query that name analyses, macros or tables."""
        return self._named.keys() & set(_WORD.findall(query.lower()))

    @cached_property
    def _named(self) -> dict[str, SqlObject]:
        """Name in a query ─▶ object; a name without version stands for the newest version."""
        newest = {one.base_name: one for one in self.newest()}
        return {one.name: one for one in (*self.analyses, *self.macros, *self.tables)} | newest

    @cached_property
    def _reads_derived(self) -> dict[Path, bool]:
        return {}

    def stands_on(self, about: SqlObject) -> list[SqlObject]:
        """List an object and its transitive dependencies, sorted by path."""
        found = {about.path: about}
        to_read = [about]
        while to_read:
            words = to_read.pop().words
            named = [one for word in words for one in self._dependencies.get(word, ())]
            to_read += [one for one in named if one.path not in found]
            found |= {one.path: one for one in named}
        return [found[path] for path in sorted(found)]

    @cached_property
    def _dependencies(self) -> dict[str, list[SqlObject]]:
        """Name in the SQL of an object ─▶ objects that it reads: a table and its computation."""
        named = {about.name: [about] for about in (*self.tables, *self.macros)}
        return named | {one.base_name: [*named.get(one.base_name, ()), one] for one in self.derived}

    @cached_property
    def computing(self) -> Library:
        """The derived tables and their dependencies only: a tenth of the library's objects."""
        used = {one.path for about in self.derived for one in self.stands_on(about)}
        needed = tuple(macro for macro in self.macros if macro.path in used)
        return Library(tables=self.tables, macros=needed, analyses=(), derived=self.derived)

    def versions(self, name: str) -> list[SqlObject]:
        """List the versions of an analysis, oldest first."""
        found = [a for a in self.analyses if a.base_name == name]
        return sorted(found, key=lambda a: a.version or 0)

    def newest(self) -> list[SqlObject]:
        """List the newest stable version of each analysis, or the newest one if none is stable."""
        return list(self._newest)

    @cached_property
    def _newest(self) -> tuple[SqlObject, ...]:
        chosen: dict[str, SqlObject] = {}
        for analysis in sorted(self.analyses, key=lambda a: (a.status == "stable", a.version or 0)):
            chosen[analysis.base_name] = analysis
        return tuple(chosen[name] for name in sorted(chosen))

    def newest_by_topic(self) -> list[SqlObject]:
        """List the result of :meth:`newest`, sorted by topic."""
        return sorted(self.newest(), key=lambda a: (a.topic, a.name))

    def described(self, name: str, version: int | None = None) -> SqlObject:
        """Find a table, or an analysis as :meth:`find` does."""
        table = next((table for table in self.tables if table.name == name), None)
        return table or self.find(name, version)

    def find(self, name: str, version: int | None = None) -> SqlObject:
        """Find an analysis by name, with or without its version.

        Raises:
            AnalysisNotFoundError: There is no such analysis or version; the message suggests the
                nearest name.
        """
        match = _VERSION.match(name)
        if match and version is None:
            name, version = match.group(1), int(match.group(2))
        found = self.versions(name)
        if not found:
            raise AnalysisNotFoundError(
                f"No analysis {name!r}.{suggested(name, self.newest())} See them all: hta-sql list"
            )
        if version is None:
            return next(a for a in self.newest() if a.base_name == name)
        for analysis in found:
            if analysis.version == version:
                return analysis
        known = ", ".join(str(a.version) for a in found)
        raise AnalysisNotFoundError(
            f"Analysis {name!r} has no version {version}; available: {known}."
        )


@cache
def load_library() -> Library:
    """Parse sql/tables, sql/lib, sql/derived and sql/analyses of this installation."""
    return parse_library(sql_root())


def parse_library(root: Path) -> Library:
    """Parse the .sql files below a folder laid out like sql/."""
    derived = [parse_file(p) for p in sorted((root / "derived").glob("*.sql"))]
    newest = {about.base_name: about for about in sorted(derived, key=lambda a: a.version or 0)}
    library = Library(
        tables=_ordered_tables(
            tuple(parse_file(p) for p in sorted((root / "tables").glob("*.sql")))
        ),
        macros=tuple(parse_file(p) for p in sorted((root / "lib").rglob("*.sql"))),
        analyses=tuple(parse_file(p) for p in sorted((root / "analyses").glob("*/*.sql"))),
        derived=tuple(newest[name] for name in sorted(newest)),
    )
    # A table always has more dependencies than each table it depends on.
    ordered = sorted(library.derived, key=lambda about: len(library.stands_on(about)))
    return replace(library, derived=tuple(ordered))


def _ordered_tables(tables: tuple[SqlObject, ...]) -> tuple[SqlObject, ...]:
    """Sort views so that those over other views come after those over Parquet files."""
    return tuple(sorted(tables, key=lambda t: ("stored." not in t.text, t.name)))


def _in_order(macros: Iterable[SqlObject]) -> tuple[SqlObject, ...]:
    by_name = {macro.name: macro for macro in macros}
    ordered: dict[str, SqlObject] = {}
    waiting: set[str] = set()

    def place(name: str) -> None:
        if name in ordered or name in waiting:
            return
        waiting.add(name)
        called = _CALLED.findall(_COMMENT_LINE.sub("", by_name[name].text))
        for other in sorted(set(called) & by_name.keys()):
            place(other)
        ordered[name] = by_name[name]

    for name in by_name:
        place(name)
    return tuple(ordered.values())


def parse_file(path: Path) -> SqlObject:
    """Parse one file of the library.

    Raises:
        LibraryError: The file does not have the required form.
    """
    try:
        return parse_text(path, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise LibraryError(f"{path}:1: the file cannot be read: {error}") from error


def parse_text(path: Path, text: str) -> SqlObject:
    """Parse the text of a library file.

    Raises:
        LibraryError: The text does not have the required form.
    """
    macro = _MACRO.search(text)
    declared = macro or _VIEW.search(text)
    if not declared:
        raise LibraryError(
            f"{path}:1: no 'CREATE OR REPLACE MACRO name(' with one parameter per line, and no "
            "'CREATE OR REPLACE VIEW name AS'. Use another file in the folder as a template."
        )
    if not text.startswith("--") or not text.partition("\n")[0].strip("- "):
        raise LibraryError(
            f"{path}:1: start the file with a one-line comment that describes its result."
        )
    return SqlObject(
        path=path,
        name=declared.group(1),
        text=text,
        places=(*(macro.span(2) if macro else (0, 0)), declared.end()),
        is_scalar=bool(macro and not macro.group(3)),
    )
