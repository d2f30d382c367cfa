"""Found by worker processes of tests that put this folder on PYTHONPATH: some traces kill.

A process that opens ``dies*.json`` ends at once; ``killed*.json`` is as if the system killed it.
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
