"""``python -m hta_sql`` is ``hta-sql``."""

from __future__ import annotations

from hta_sql.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
