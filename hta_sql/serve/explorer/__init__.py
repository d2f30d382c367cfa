"""Show a store in the browser: select run, ranks and steps, view charts and tables, run SQL.

The page is a marimo notebook (:mod:`hta_sql.serve.explorer.page`). It runs as an app in a separate
process on this machine and shows what :mod:`hta_sql.serve.explorer.views` computes.
"""
