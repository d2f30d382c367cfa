"""Catalog of a store: template, bindings to Parquet files, columns, materialized tables, own analyses."""
