"""Reads Inductor's files about compiled kernels: their graph nodes and model source stacks."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from hta_sql.errors import TraceFormatError
from hta_sql.traces.source import open_any

MAX_BYTES = 64 << 20
"""Maximum size of a file [bytes]; the file of a model with 1,000 kernels has 2 MB."""

KERNEL_INFORMATION_NAME = re.compile(
    r"(?:^|[^a-z])(?:kernel_information|inductor_provenance_tracking_(?:node_mappings|kernel_stack_traces))"
    r"(?:[^a-z].*)?\.json(?:\.\w+)?$"
)
"""Names that PyTorch (torch/_inductor/codecache.py, debug.py) and tlparse give these files."""

_KEY = re.compile(r"^(?P<name>.+?)(?::(?P<handle>\d{1,18}))?$", re.DOTALL)
_NODES = "post_grad_nodes"
_OF_KERNELS = "cppCodeToPost"


class CompiledKernel(NamedTuple):
    """A compiled kernel, as described in the file."""

    graph: str | None
    """Compiled region; None if the file does not distinguish graphs."""
    is_backward: bool | None
    name: str
    debug_handle: int | None
    """Number of the kernel's call in the generated code."""
    post_grad_nodes: list[str]
    pre_grad_nodes: list[str]
    stacks: list[str]
    semantic_key: str | None


def read_kernel_information(path: str) -> list[CompiledKernel]:
    """Read the kernels of a file that Inductor wrote.

    Four formats are known, all with keys ``kernel:handle``: kernel_information.json, the result of
    torch._inductor.debug.get_kernel_information_jsons by compiled region, node mappings, and stacks
    alone.

    Raises:
        TraceNotFoundError: The file does not exist.
        TraceFormatError: The file has none of these formats, or is too large.
    """
    with open_any(path) as stream:
        text = stream.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise TraceFormatError(
            f"{path!r} is too large: kernel information files may be at most {MAX_BYTES >> 20} MiB."
        )
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceFormatError(f"{path!r} is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise TraceFormatError(f"{path!r} is not kernel information: it is not a JSON object.")
    if isinstance(value.get(_OF_KERNELS), dict):
        to_pre = value.get("postToPre")
        value = {
            key: {_NODES: nodes, "pre_grad_nodes": _before(nodes, to_pre)}
            for key, nodes in value[_OF_KERNELS].items()
        }
    return list(_kernels(value, None, None))


def _kernels(
    value: dict[str, Any], graph: str | None, is_backward: bool | None
) -> Iterator[CompiledKernel]:
    for key, described in value.items():
        found = _KEY.match(key)
        entry = {"stack_traces": described} if isinstance(described, list) else described
        if not found or not isinstance(entry, dict):
            continue
        if graph is None and (region := _region(key)):
            yield from _kernels(entry, *region)
            continue
        handle, semantic_key = found["handle"], entry.get("extern_semantic_key")
        yield CompiledKernel(
            graph,
            is_backward,
            _clean(found["name"]),
            int(handle) if handle else None,
            _texts(entry.get(_NODES)),
            _texts(entry.get("pre_grad_nodes")),
            _texts(entry.get("stack_traces")),
            _clean(semantic_key) if isinstance(semantic_key, str) else None,
        )


def _region(key: str) -> tuple[str, bool] | None:
    """Parse the key of a compiled region: ``('Torch-Compiled Region: 0/0', False)``."""
    if not key.startswith("("):
        return None
    try:
        name, is_backward = ast.literal_eval(key)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    if not isinstance(name, str) or type(is_backward) is not bool:
        return None
    return _clean(name), is_backward


def _before(nodes: Any, to_pre: Any) -> list[str]:
    """Return the pre-grad graph nodes from which nodes of the compiled graph originate."""
    known = to_pre if isinstance(to_pre, dict) else {}
    found = [name for node in _texts(nodes) for name in _texts(known.get(node))]
    return list(dict.fromkeys(found))


def _texts(value: Any) -> list[str]:
    if not isinstance(value, list):
        return []
    return [_clean(item) for item in value if isinstance(item, str)]


def _clean(text: str) -> str:
    """Replace lone surrogates, which JSON can escape but UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()
