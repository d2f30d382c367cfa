"""Build the compiled reader for a wheel or a checkout, if cargo is installed.

``python hatch_build.py`` builds the reader into the checkout. ``CARGO_BUILD_TARGET`` compiles for a
different platform, which the wheel's name then states; see docs/native.md. Without cargo, the
package reads traces in SQL.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "hta_sql/traces/_reader.so"
"""Path of the reader, with the same suffix on every system, because it is loaded by its path."""

log = logging.getLogger(__name__)


class ReaderHook(BuildHookInterface):  # type: ignore[type-arg,misc,unused-ignore]
    """Build hook that adds the reader to a wheel, which then fits one platform and any Python 3."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatch's
        """Build the reader, and add it and its platform to the build data of the wheel."""
        if build_reader(Path(self.root)):
            build_data["artifacts"].append(f"/{LIBRARY}")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{_platform()}"


def build_reader(root: Path) -> bool:
    """Compile native/ into the package; return whether this succeeded."""
    library, source = root / LIBRARY, root / "native"
    cargo = shutil.which("cargo") or shutil.which("cargo", path=str(Path.home() / ".cargo" / "bin"))
    if not cargo or not source.is_dir():
        # A reader from an earlier build may not match the current source.
        library.unlink(missing_ok=True)
        return False
    built = root / "build" / "native"
    command = [cargo, "build", "--release", "--offline", "--quiet", "--target-dir", str(built)]
    # Run in native/, because cargo reads settings from the current folder and those above it.
    done = subprocess.run(command, cwd=source, check=False, capture_output=True, text=True)  # noqa: S603
    target = os.environ.get("CARGO_BUILD_TARGET", "")
    names = ("libhta_sql_reader.so", "libhta_sql_reader.dylib", "hta_sql_reader.dll")
    found = [path for name in names if (path := built / target / "release" / name).is_file()]
    if done.returncode or not found:
        library.unlink(missing_ok=True)
        log.warning("The compiled reader cannot be built; SQL reads all traces:\n%s", done.stderr)
        return False
    unnamed = library.with_name(f".{library.name}")
    shutil.copy(found[0], unnamed)
    unnamed.replace(library)
    return True


def _platform() -> str:
    """Return the platform tag of the wheel."""
    here = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    target = os.environ.get("CARGO_BUILD_TARGET", "")
    return f"linux_{target.split('-')[0]}" if "linux" in target else here


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    is_there = build_reader(Path(__file__).parent)
    log.info("The compiled reader is %s.", "built" if is_there else "not built: no cargo here")
    sys.exit(0)
