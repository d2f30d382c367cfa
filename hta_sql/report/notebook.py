"""Renders the first screen of the report for a notebook, where a store displays it."""

from __future__ import annotations

from time import monotonic

from markupsafe import Markup

from hta_sql.charts.page import page_of
from hta_sql.report.answers import first_screen
from hta_sql.report.overview import overview_markup
from hta_sql.report.rendering import render
from hta_sql.results.notebook import result_markup
from hta_sql.store.query.limits import in_time
from hta_sql.store.query.trace_store import TraceStore

SECONDS = 20.0
"""Time after which the analyses of the first screen are interrupted [s]."""


def store_markup(store: TraceStore, seconds: float = SECONDS) -> Markup:
    """Return the first screen of the report as HTML for a notebook.

    The first screen is a page in a frame: it runs no script, requests nothing, and its styles do not
    reach the notebook. If it cannot be rendered in time, the runs are listed with the reason.

    Args:
        store: The store.
        seconds: Time after which the analyses are interrupted [s].
    """
    try:
        return _first_screen(store, seconds)
    except Exception as error:  # noqa: BLE001 - displaying a store must not end in a traceback
        return _runs(store, f"The first screen of the report is not available: {error}")


def _first_screen(store: TraceStore, seconds: float) -> Markup:
    """Return the first screen, or the runs if its analyses exceed the time limit."""
    begin = monotonic()
    with in_time(store, seconds):
        first = first_screen(store, {})
    if first.failures and monotonic() - begin >= seconds:
        hint = f'The analyses take more than {seconds:g} s: store.report("report.html") runs them.'
        return _runs(store, hint)
    body = render("notebook", overview=overview_markup(first, set()))
    # A string, not markup: in the attribute, the whole page is escaped once more.
    return render("frame", page=str(page_of("First screen", body, has_scripts=False)))


def _runs(store: TraceStore, hint: str) -> Markup:
    """Return the runs of a store and a hint, or only the hint if the store cannot be read."""
    try:
        runs = result_markup(store.table("runs"))
    except Exception:  # noqa: BLE001 - the hint has the reason
        runs = Markup()
    return Markup("<p>{}</p>{}<p>{}</p>").format(repr(store), runs, hint)
