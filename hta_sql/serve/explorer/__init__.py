"""A store in the browser: run, ranks and steps are chosen, charts and tables follow, SQL is asked.

The page is a marimo notebook (:mod:`hta_sql.serve.explorer.page`) that runs as an app in a process of its
own, on this machine; what it shows is computed by :mod:`hta_sql.serve.explorer.views`.
"""
