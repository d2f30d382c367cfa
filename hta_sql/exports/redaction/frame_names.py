"""Splits names of Python frames; paths in known packages are kept from site-packages onward."""

from __future__ import annotations

import re
import sys

from hta_sql.exports.redaction.public import listed

_LINE = re.compile(r"(?P<path>.*)\((?P<line>\d+)\): (?P<function>.*)", re.DOTALL | re.ASCII)
_INSTALLED = re.compile(r"(?:^|.*/)(?P<place>(?:site|dist)-packages/)(?P<rest>.*)")
_OF_PYTHON = re.compile(r"(?:^|.*/)(?P<place>lib/python3(?:\.\d+)?/)(?P<rest>.*)", re.ASCII)
_COMPILED = re.compile(r"<string>|<stdin>|<eval_with_key>\.\d+", re.ASCII)
_FROZEN = re.compile(r"<frozen (?P<module>[\w.]+)>", re.ASCII)
_MODULE = re.compile(r"[A-Za-z0-9_./-]+\.pyx?")
_FUNCTION = re.compile(r"[\w.<>]+", re.ASCII)

Parts = list[tuple[str | None, str]]
"""(None, public text) or (kind, text to hash)."""


def frame_parts(name: str) -> Parts:
    """Split the name of a frame, ``<path>(<line>): <function>``, into public and private parts."""
    found = _LINE.fullmatch(name)
    if not found:
        return [("frame", name)]
    path, line, function = found.groups()
    public = _public_path(path)
    if public is not None:
        return [(None, f"{public}({line}): "), *_function(function, is_library=True)]
    if _COMPILED.fullmatch(path):  # exec() of any text: the path is public, the function is not
        return [(None, f"{path}({line}): "), *_function(function, is_library=False)]
    return [("frame", path), (None, f".py({line}): "), *_function(function, is_library=False)]


def _function(name: str, *, is_library: bool) -> Parts:
    is_kept = name in listed("function") or (is_library and _FUNCTION.fullmatch(name))
    return [(None, name)] if is_kept else [("function", name)]


def _public_path(path: str) -> str | None:
    """Return the path of a library's module, from site-packages on; None if it may be private."""
    if frozen := _FROZEN.fullmatch(path):
        return path if frozen["module"] in listed("frozen") else None
    path = path.replace("\\", "/")
    if found := _INSTALLED.fullmatch(path):
        return found["place"] + found["rest"] if _is_of(found["rest"], "package") else None
    if found := _OF_PYTHON.fullmatch(path):
        top = found["rest"].partition("/")[0].removesuffix(".py")
        is_public = top in sys.stdlib_module_names and _is_module(found["rest"])
        return found["place"] + found["rest"] if is_public else None
    # The profiler strips the folders of sys.path, so a project's own folder looks like a package.
    is_package = _is_of(path, "package") and not _is_of(path, "project")
    return path if "/" in path and (is_package or _is_of(path, "directory")) else None


def _is_of(path: str, kind: str) -> bool:
    top = path.partition("/")[0].removesuffix(".py")
    return top in listed(kind) and _is_module(path)


def _is_module(path: str) -> bool:
    return _MODULE.fullmatch(path) is not None and ".." not in path
