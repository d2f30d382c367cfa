"""The process of the page, ``python -m hta_sql.explorer run PAGE …``: it ends with who started it.

However that ends: a pipe that nobody holds open any more is at its end.
"""

from __future__ import annotations

import os
import runpy
import sys
import threading


def _end_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.argv[0] = "marimo"
    runpy.run_module("marimo", run_name="__main__", alter_sys=True)
