"""Kill processes that open certain traces, in tests that put this folder on PYTHONPATH.

A process that opens ``dies*.json`` exits at once. A process that opens ``killed*.json`` is killed
by a signal.
"""

import os
import signal
import sys


def _hook(event: str, arguments: tuple[object, ...]) -> None:
    name = os.path.basename(str(arguments[0])) if event == "open" else ""  # noqa: PTH119
    if not name.endswith(".json"):
        return
    if name.startswith("dies"):
        sys.stderr.write("libfoo: cannot allocate a widget\n")
        sys.stderr.flush()
        os._exit(7)
    if name.startswith("killed"):
        os.kill(os.getpid(), signal.SIGKILL)


sys.addaudithook(_hook)
