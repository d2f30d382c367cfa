"""Commands, analyses and tables as tab-completed attributes of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

from hta_sql.errors import nearest

if TYPE_CHECKING:
    from hta_sql.library.objects import Library, SqlObject
    from hta_sql.results.result import Result

    Ask = Callable[..., Result]


_commands: dict[str, Callable[..., Any]] = {}
"""Commands of later layers; importing ``hta_sql`` or any of its modules registers them."""


def register_command(name: str, function: Callable[..., Any]) -> None:
    """Register a command as a method of stores; its first argument is the store."""
    _commands[name] = function


class ByName:
    """Notebook interface of a store: analyses and tables by name, and its HTML representation.

    Commands and analyses are also methods: ``store.report(path)``, ``store.stragglers(runs="job")``.
    """

    library: Library
    run: Ask
    table: Ask

    @property
    def analyses(self) -> Names:
        """The analyses: ``store.analyses.idle_causes(ranks=0)``."""
        return Names("analysis", self.library.newest(), self.run)

    @property
    def tables(self) -> Names:
        """The tables: ``store.tables.gpu_ops(ranks=[0])``."""
        return Names("table", self.library.tables, self.table)

    def describe(self, name: str, version: int | None = None) -> SqlObject:
        """Return the documentation of an analysis or a table: parameters, columns and meaning."""
        return self.library.described(name, version)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_commands, *dir(self.analyses)})

    if not TYPE_CHECKING:  # so that type checkers find misspelled methods

        def __getattr__(self, name: str) -> Callable[..., Any]:
            """Return a command or an analysis."""
            if name.startswith("_") or "library" not in self.__dict__:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            function = _commands.get(name)
            return partial(function, self) if function else getattr(self.analyses, name)

    def _repr_html_(self) -> str:
        """Return the first screen of the report, which a later layer renders."""
        return str(_commands["_repr_html_"](self))


class Names:
    """Library objects as attributes; each is a callable that queries the store.

    Args:
        kind: Kind of the objects, for messages.
        objects: The objects.
        ask: Called with the name of an object and the caller's parameters.
    """

    def __init__(self, kind: str, objects: Iterable[SqlObject], ask: Ask) -> None:
        self._kind = kind
        self._objects = {about.base_name: about for about in objects}
        self._ask = ask

    def __dir__(self) -> list[str]:
        return sorted(self._objects)

    def __getattr__(self, name: str) -> Call:
        about = self._objects.get(name)
        if about is None:
            raise AttributeError(f"No {self._kind} {name!r}.{nearest(name, self._objects)}")
        return Call(about, self._ask)

    def __repr__(self) -> str:
        return f"<{len(self._objects)} names of kind {self._kind}: {', '.join(dir(self))}>"


class Call:
    """A callable analysis or table; its help and signature come from its SQL file."""

    def __init__(self, about: SqlObject, ask: Ask) -> None:
        self._about, self._ask = about, ask
        self.__name__ = about.base_name
        self.__doc__ = about.full_description
        self.__signature__ = Signature(
            [
                Parameter(p.name, Parameter.KEYWORD_ONLY, default=_Shown(p.default or "NULL"))
                for p in about.parameters
            ]
        )

    def __call__(self, **parameters: Any) -> Result:
        """Query the store."""
        return self._ask(self._about.base_name, **parameters)

    def __repr__(self) -> str:
        return f"<{self.__name__}{self.__signature__}: {self._about.summary}>"

    def _repr_html_(self) -> str:
        return self._about._repr_html_()


class _Shown(str):
    """A default value, shown as in the SQL file."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)
