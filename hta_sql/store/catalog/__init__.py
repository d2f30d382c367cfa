"""Catalog of a store: template, Parquet bindings, columns, materialized tables, user analyses."""
