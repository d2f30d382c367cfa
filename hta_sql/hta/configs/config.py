"""Provide the logger of this package under the name of HTA's."""

from __future__ import annotations

import logging

__all__ = ["logger"]

logger = logging.getLogger("hta_sql")
