"""What a store is handed on as: sheets, one DuckDB file, a comparison."""
