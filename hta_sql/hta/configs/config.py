"""Read settings of user scripts from JSON files, with HTA's HtaConfig.

No analysis depends on these settings.
"""

from __future__ import annotations

import json
import logging
import logging.config
import os
from pathlib import Path
from typing import Any

from hta_sql.errors import ParameterError
from hta_sql.hta.configs.default_values import DEFAULT_CONFIG_FILENAME

__all__ = ["HtaConfig", "logger", "setup_logger"]

logger = logging.getLogger("hta_sql")


def setup_logger(config_file: str = "logging.config") -> None:
    """Configure logging from a file in the format of :func:`logging.config.fileConfig`.

    Args:
        config_file: Path of the file. If it does not exist, the logger ``hta_sql`` is unchanged.
    """
    if Path(config_file).is_file():
        logging.config.fileConfig(config_file, disable_existing_loggers=False)


class HtaConfig:
    """Settings from several files; later files override keys of earlier ones.

    Args:
        config_file_path: A file to read last.
        load_default_paths: Whether to read the files of :meth:`get_default_paths` first.

    Attributes:
        config: The settings.
        config_file_paths: Paths of the candidate files.

    Raises:
        ParameterError: A file is not a JSON object.
    """

    def __init__(
        self, config_file_path: str | None = None, load_default_paths: bool | None = True
    ) -> None:
        self.config_file_paths = self.get_default_paths() if load_default_paths else []
        if config_file_path:
            self.config_file_paths.append(config_file_path)
        self.config: dict[str, Any] = {}
        for path in self.get_config_file_paths():
            self.config.update(_read(path))

    @staticmethod
    def get_default_paths() -> list[str]:
        """Return the default files: in this package, the user's home and the working directory."""
        folders = (Path(__file__).parents[1], Path.home() / ".hta", Path.cwd())
        return [str(folder / DEFAULT_CONFIG_FILENAME) for folder in folders]

    def get_config_file_paths(self) -> list[str]:
        """Return the files that exist."""
        return [path for path in self.config_file_paths if os.access(path, os.R_OK)]

    def get_config(self, dot_path: str | None = None, default_value: Any = None) -> Any:
        """Return a setting.

        Args:
            dot_path: Keys from the outermost inwards, such as ``a.b.c``; None: all settings.
            default_value: Value to return if the setting does not exist.
        """
        found: Any = self.config
        for key in dot_path.split(".") if dot_path is not None else ():
            if not isinstance(found, dict) or key not in found:
                return default_value
            found = found[key]
        return found

    def show(self) -> None:
        """Log the settings as JSON."""
        logger.info("%s", json.dumps(self.config, indent=4, sort_keys=True))


def _read(path: str) -> dict[str, Any]:
    try:
        config = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ParameterError(f"{path!r} cannot be read as JSON: {error}.") from error
    if not isinstance(config, dict):
        raise ParameterError(f"{path!r} is not a JSON object.")
    return config
