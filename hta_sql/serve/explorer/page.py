"""Page of the explorer: a marimo notebook, run as an app by ``hta-sql explore``.

marimo derives the order of cells from the names that each cell takes and returns.
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="full", app_title="hta_sql")


@app.cell
def _imports():
    import os

    import marimo as mo

    from hta_sql.serve.explorer import views

    store = views.opened(os.environ)
    return mo, store, views


@app.cell
def _run(mo, store):
    runs = store.runs()
    run = mo.ui.dropdown(runs, value=runs[0], label="run")
    return (run,)


@app.cell
def _scope(mo, run, store, views):
    known = views.topics(store)
    ranks = mo.ui.multiselect({str(r): r for r in store.ranks(run.value)}, label="ranks (all)")
    steps = mo.ui.multiselect(
        {str(s): s for s in views.steps_of(store, run.value)}, label="steps (all)"
    )
    topic = mo.ui.dropdown(list(known), value=next(iter(known)), label="topic")
    return known, ranks, steps, topic


@app.cell
def _name(known, mo, run, store, topic, views):
    names = known[topic.value]
    name = mo.ui.dropdown(names, value=views.opening(store, run.value, names), label="analysis")
    return (name,)


@app.cell
def _head(mo, name, ranks, run, steps, store, topic):
    about = store.describe(name.value)
    mo.vstack(
        [
            mo.hstack([run, ranks, steps, topic, name], justify="start", wrap=True),
            mo.md(f"## {about.title}\n\n`{name.value}`: {about.summary}"),
        ]
    )
    return (about,)


@app.cell
def _answer(name, ranks, run, steps, store, views):
    result = views.answer(store, name.value, run.value, ranks.value, steps.value)
    return (result,)


@app.cell
def _chart(mo, result, views):
    figure = None if isinstance(result, str) else views.chart_of(result)
    chart = mo.ui.altair_chart(figure) if figure is not None else None
    if isinstance(result, str):
        shown = mo.callout(result, kind="neutral")
    else:
        shown = chart if chart is not None else mo.md("")
    shown
    return (chart,)


@app.cell
def _table(chart, mo, result, views):
    mo.stop(isinstance(result, str))
    rows = views.selected(views.rows_of(result), chart.selections if chart is not None else {})
    mo.ui.table(
        rows, format_mapping=views.formats(result), selection=None, page_size=20, label="Rows"
    )


@app.cell
def _sql(about, mo, views):
    mo.accordion(
        {
            "Definitions and columns": mo.md(views.explained(about)),
            "SQL": mo.ui.code_editor(about.text, language="sql", disabled=True),
        }
    )


@app.cell
def _question(mo, store, views):
    question = mo.ui.code_editor(views.example(), language="sql", min_height=120).form(
        submit_button_label="Run", bordered=False
    )
    mo.vstack(
        [
            mo.md("## SQL query"),
            question,
            mo.accordion(
                {
                    "Tables and columns": mo.accordion(
                        {t: mo.md(w) for t, w in views.schema(store).items()}
                    )
                }
            ),
        ]
    )
    return (question,)


@app.cell
def _query_result(mo, question, store, views):
    mo.stop(question.value is None)
    said = views.asked(store, question.value)
    if isinstance(said, str):
        query_output = mo.callout(said, kind="warn")
    else:
        query_output = mo.ui.table(
            said.df(), format_mapping=views.formats(said), selection=None, page_size=20
        )
    query_output


if __name__ == "__main__":
    app.run()
