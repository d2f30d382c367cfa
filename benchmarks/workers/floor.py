"""Measure the lower bound: decompress and parse the same files with the fastest JSON parsers.

No reader of a trace can be faster than decompressing and parsing its bytes, and this does no
analysis at all. One thread reads file by file, with one document in memory at a time.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from benchmarks.workers.laps import Laps, request

GZIP_MAGIC = b"\x1f\x8b"


def main(asked: dict[str, Any]) -> None:
    """Parse each file; decompression and parsing are separate laps."""
    # Imported by name, because the environment of the type checker does not have it.
    igzip = importlib.import_module("isal.igzip")
    parse = _parser(asked["parser"])
    gunzip = {"wall_s": 0.0, "cpu_s": 0.0}
    parsed = {"wall_s": 0.0, "cpu_s": 0.0}
    json_bytes = 0
    for path in asked["files"]:
        laps = Laps()
        text = Path(path).read_bytes()
        if text.startswith(GZIP_MAGIC):
            text = igzip.decompress(text)
        laps.lap("gunzip")
        document = parse(text)
        laps.lap("parse")
        json_bytes += len(text)
        del document, text
        for key in gunzip:
            gunzip[key] += laps.laps["gunzip"][key]
            parsed[key] += laps.laps["parse"][key]
    total = {key: gunzip[key] + parsed[key] for key in gunzip}
    answer = Laps()
    answer.laps = {"gunzip": gunzip, "parse": parsed, "total": total}
    answer.print(json_bytes=json_bytes)


def _parser(name: str) -> Any:
    if name == "orjson":
        return importlib.import_module("orjson").loads
    # simdjson's own document, a tape, without creating Python objects.
    return importlib.import_module("simdjson").Parser().parse


if __name__ == "__main__":
    main(request())
