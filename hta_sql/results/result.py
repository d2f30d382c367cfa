"""The result of an analysis or a query, convertible to other formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from hta_sql.errors import ExtraNotInstalledError
from hta_sql.library.objects import SqlObject
from hta_sql.results.engine_types import fitting, table_of_relation
from hta_sql.text import TABLE_ROWS, counted

if TYPE_CHECKING:
    import altair as alt
    import duckdb
    import pandas as pd
    import pyarrow as pa


class Result:
    """Rows with named columns, computed once and cached.

    Attributes:
        analysis: The analysis; None for ad-hoc SQL.
        given: Names of the parameters by which the caller restricted the rows.
        drawn_from: The result of another analysis of the same scope, from which the chart is drawn.
            For example, an analysis with a row per event is drawn from one that aggregates the
            events in SQL.
        paths: Parquet files in the store that hold the rows, if an executor computed many rows.
            They are read on demand, and deleted by the next ingest.
    """

    def __init__(
        self,
        relation: duckdb.DuckDBPyRelation | None,
        analysis: SqlObject | None = None,
        given: Iterable[str] = (),
        drawn_from: Result | None = None,
    ) -> None:
        self.analysis = analysis
        self.given = tuple(given)
        self.drawn_from = drawn_from
        self.paths: tuple[str, ...] = ()
        self._rows: Callable[[], pa.Table] | None = None
        self._table = None if relation is None else fitting(table_of_relation(relation))

    @classmethod
    def of_rows(
        cls,
        rows: pa.Table | Callable[[], pa.Table],
        analysis: SqlObject | None = None,
        given: Iterable[str] = (),
        drawn_from: Result | None = None,
        paths: Iterable[str] = (),
    ) -> Result:
        """Create a result from rows, or from a function that returns the rows on demand."""
        result = cls(None, analysis, given, drawn_from)
        if callable(rows):
            result._rows = rows
        else:
            result._table = fitting(rows)
        result.paths = tuple(paths)
        return result

    def arrow(self) -> pa.Table:
        """Return a pyarrow table."""
        import pyarrow as pa  # noqa: PLC0415 - imported only when needed

        if self._table is None:
            self._table = fitting(self._rows()) if self._rows else pa.table({})
        return self._table

    def df(self) -> pd.DataFrame:
        """Return a pandas frame."""
        frame: pd.DataFrame = self.arrow().to_pandas()
        return frame

    def pl(self) -> Any:
        """Return a polars frame.

        Raises:
            ExtraNotInstalledError: polars is not installed.
        """
        try:
            import polars as pl  # noqa: PLC0415 - optional dependency
        except ImportError as error:
            raise ExtraNotInstalledError("polars is not installed: pip install polars") from error
        return pl.from_arrow(self.arrow())

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the rows as tuples."""
        columns = [column.to_pylist() for column in self.arrow().columns]
        return list(zip(*columns, strict=True))

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dicts by column name."""
        records: list[dict[str, Any]] = self.arrow().to_pylist()
        return records

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.arrow().column_names)

    def __len__(self) -> int:
        return int(self.arrow().num_rows)

    def head(self, max_rows: int) -> list[tuple[str, bool, list[Any]]]:
        """Return (name, whether numeric, first values) per column; ``max_rows`` 0: all values."""
        from hta_sql.results.display import head_of  # noqa: PLC0415 - imported only when needed

        return head_of(self.arrow(), max_rows)

    def show(self, max_rows: int = TABLE_ROWS) -> None:
        """Print the rows as a table."""
        from hta_sql.results.display import print_table  # noqa: PLC0415 - imported only when needed

        print_table(self, max_rows=max_rows)

    def chart(self, **options: Any) -> alt.TopLevelMixin:
        """Draw the result as a chart.

        Args:
            **options: Options of the figure, for example ``percent=False``.

        Returns:
            An altair chart; a notebook displays it, ``hta_sql.charts.save`` writes it to a file.

        Raises:
            ParameterError: The result has no chart, or the chart has no such option.
            ExtraNotInstalledError: altair or vl-convert-python is not installed.
        """
        from hta_sql.results.drawing import draw  # noqa: PLC0415 - imported only when needed

        return draw(self, **options)

    def _repr_html_(self) -> str:
        from hta_sql.results.notebook import result_markup  # noqa: PLC0415 - imported only when needed

        return result_markup(self)

    def __repr__(self) -> str:
        what = self.analysis.name if self.analysis else "query"
        size = f"{counted(len(self), 'row')} x {counted(len(self.columns), 'column')}"
        return f"<Result of {what}: {size}>"
