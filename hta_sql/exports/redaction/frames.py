"""Names of Python frames in parts: modules of known packages stay below site-packages."""

from __future__ import annotations

import re
import sys

from hta_sql.exports.redaction.public import listed

_LINE = re.compile(r"(?P<path>.*)\((?P<line>\d+)\): (?P<function>.*)", re.DOTALL)
_INSTALLED = re.compile(r"(?:^|.*/)(?P<place>(?:site|dist)-packages/)(?P<rest>.*)")
_OF_PYTHON = re.compile(r"(?:^|.*/)(?P<place>lib/python3(?:\.\d+)?/)(?P<rest>.*)")
_MADE = re.compile(r"<string>|<frozen [a-z_.]+>|<eval_with_key>\.\d+")
_MODULE = re.compile(r"[A-Za-z0-9_./-]+\.pyx?")

Parts = list[tuple[str | None, str]]
"""(None, text that stays) or (kind, text that is hashed)."""


def frame_parts(name: str) -> Parts:
    """Cut the name of a frame, ``<path>(<line>): <function>``, into what stays and what does not."""
    found = _LINE.fullmatch(name)
    if not found:
        return [("frame", name)]
    path, line, function = found.groups()
    public = _public_path(path)
    if public is not None:
        return [(None, f"{public}({line}): "), *_function(function, is_public=True)]
    return [("frame", path), (None, f".py({line}): "), *_function(function, is_public=False)]


def _function(name: str, *, is_public: bool) -> Parts:
    is_kept = name in listed("function") or (is_public and re.fullmatch(r"[\w.<>]+", name))
    return [(None, name)] if is_kept else [("function", name)]


def _public_path(path: str) -> str | None:
    """Return the path of a library's module, from site-packages on; None: it may be the user's."""
    if _MADE.fullmatch(path):
        return path
    path = path.replace("\\", "/")
    if found := _INSTALLED.fullmatch(path):
        return found["place"] + found["rest"] if _is_of(found["rest"], "package") else None
    if found := _OF_PYTHON.fullmatch(path):
        top = found["rest"].partition("/")[0].removesuffix(".py")
        if top in sys.stdlib_module_names and _MODULE.fullmatch(found["rest"]):
            return found["place"] + found["rest"]
        return None
    # The profiler leaves out where a package is installed.
    is_public = "/" in path and (_is_of(path, "package") or _is_of(path, "directory"))
    return path if is_public else None


def _is_of(path: str, kind: str) -> bool:
    top = path.partition("/")[0].removesuffix(".py")
    return top in listed(kind) and _MODULE.fullmatch(path) is not None and ".." not in path
