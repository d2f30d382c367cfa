"""The columns of stored tables, by the name that a store knows them by."""

from __future__ import annotations

import hashlib
import json
from functools import cache

from hta_sql.library.files import stored_columns


@cache
def columns_digest() -> str:
    """Name today's table definitions; files of another digest cannot be read together."""
    return hashlib.sha256(json.dumps(stored_columns()).encode()).hexdigest()[:16]
