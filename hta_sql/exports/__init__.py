"""Export a store to files, sheets or DuckDB; compare its runs, and gate them."""
