"""Run the command line: ``python -m hta_sql`` equals ``hta-sql``."""

from __future__ import annotations

from hta_sql.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
