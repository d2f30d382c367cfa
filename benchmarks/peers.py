"""Create the virtual environment for HTA and other peers in benchmarks/work."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

WORK = Path(__file__).resolve().parent / "work"
VENV = WORK / "peers-venv"

HTA = ("traceinsight==0.6.1", "pandas<3")
"""Requirements of HTA, which is published as traceinsight since 0.6. Pinned to compare figures."""
FLOOR = ("orjson", "isal")
SIMDJSON = ("pysimdjson",)
"""Requirements of simdjson, which is skipped if there is neither a wheel nor a compiler."""


def peers_python() -> str:
    """Return the environment's interpreter; create the environment on the first call."""
    python = VENV / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    done = VENV / "complete"
    if not done.exists():
        print(f"Installing {', '.join(HTA + FLOOR + SIMDJSON)} into {VENV} ...", file=sys.stderr)
        venv.create(VENV, with_pip=True, clear=True)
        _install(python, *HTA, *FLOOR)
        try:
            _install(python, *SIMDJSON)
        except subprocess.CalledProcessError:
            print("pysimdjson cannot be installed here; that floor is left out.", file=sys.stderr)
        done.touch()
    return str(python)


def versions(python: str, packages: list[str]) -> dict[str, str]:
    """Return name ─▶ version of the packages that are installed."""
    code = (
        "import sys\nfrom importlib.metadata import PackageNotFoundError, version\n"
        "for name in sys.argv[1:]:\n    try:\n        print(name, version(name))\n"
        "    except PackageNotFoundError:\n        pass"
    )
    ran = subprocess.run(
        [python, "-c", code, *packages], check=True, capture_output=True, text=True
    )
    return dict(line.split() for line in ran.stdout.splitlines())


def _install(python: Path, *requirements: str) -> None:
    subprocess.run([str(python), "-m", "pip", "install", "-qq", *requirements], check=True)
