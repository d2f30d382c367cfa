"""Hostile names generated from a grammar, and traces that have such a name in every name field."""

from __future__ import annotations

import gzip
import html
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hta_sql.synthetic import JobSpec, write_job

BEFORE = (
    *("", '"', "'", "`", ">", '">', "'>", "-->", "]]>", "*/", "\\", "\\u0022>", '"}', '"]}', "];"),
    *(
        "&quot;>",
        "&#34;>",
        "%22%3E",
        "\n",
        "\r\n\r\n",
        "\u2028",
        "\u202e",
        "\u2066",
        "\u200f",
        "\x1b[31m",
    ),
    *(
        "</script>",
        "</style>",
        "</title>",
        "</textarea>",
        "</pre></details>",
        "</svg>",
        "</template>",
    ),
    *(
        "\x00",
        "\x9b31m",
        "\ufeff",
        "\u200b",
        "</td></tr></table>",
        "</noscript>",
        "\\'",
        "\\\\",
        "\t",
    ),
)
AFTER = (
    "",
    "//",
    "<!--",
    "/*",
    '"',
    "'",
    "`",
    "\u202c",
    "\u2069",
    "<script>",
    "<",
    "&",
    "\\",
    "<!",
)
CODE = (
    *(
        "window.owned=1",
        "self.owned=1",
        "top[`own`+`ed`]=1",
        "document.title=`owned`",
        "eval(`owned=1`)",
    ),
    *("owned=fetch('https://x.invalid')", "window['owned']=1", "globalThis.owned=1", "(owned=1)"),
)
ELEMENTS = (
    *(
        "<script>{}</script>",
        "<ScRiPt >{}</sCrIpT>",
        "<script src='data:text/javascript,{}'></script>",
    ),
    *(
        '<img src=x onerror="{}">',
        "<img/src=x/onerror={}>",
        '<svg onload="{}">',
        "<svg><script>{}</script>",
    ),
    *('<body onload="{}">', '<details open ontoggle="{}">', '<input autofocus onfocus="{}">'),
    *(
        '<video src=x onerror="{}">',
        '<iframe srcdoc="<script>{}</script>">',
        '<marquee onstart="{}">',
    ),
    *(
        '<object data="javascript:{}">',
        '<a href="javascript:{}" autofocus>x</a>',
        '<base href="javascript:{}//">',
    ),
    *(
        '<form action="javascript:{}"><input type=submit>',
        '<math href="javascript:{}">',
        "<style>@import '{}'",
    ),
    *(
        '<meta http-equiv=refresh content="0;url=javascript:{}">',
        '<link rel=stylesheet href="data:,{}">',
    ),
    *(
        '<div style="animation:x" onanimationstart="{}">',
        '<template shadowrootmode=open><img onerror="{}">',
    ),
)
ATTRIBUTES = (
    ' onmouseover="{}" x="',
    "' autofocus onfocus='{}' x='",
    " onclick={} ",
    ' style="x:{}" ',
)
ADDRESSES = (
    *(
        "javascript:{}",
        "jav\tascript:{}",
        "JaVaScRiPt:{}",
        "data:text/html,<script>{}</script>",
        "vbscript:{}",
    ),
    *("file:///etc/passwd#{}", "//x.invalid/{}", "#{}", "blob:{}"),
)
TEMPLATES = (
    *(
        "{{{{constructor.constructor('{}')()}}}}",
        "${{{}}}",
        "#{{{}}}",
        "<%= {} %>",
        "{{% raw %}}{}",
        "[[${{{}}}]]",
    ),
    *("$${}$$", "%s%n{}", "{{0}}{{x!r}}{}", "$(touch owned){}", "`{}`"),
)
VEGA = (
    *(
        "datum['x']||({})",
        '{{"signal": "{}"}}',
        '{{"expr": "{}"}}',
        "'];{};//",
        "\\'];{};//",
        "a.b[0].{}",
    ),
    *(
        "toString.constructor('{}')()",
        "__proto__.{}",
        "constructor",
        "__proto__",
        "hasOwnProperty",
        "event.view.{}",
    ),
)
TABLES = (
    *(
        "=cmd|' /C {}'!A0",
        "@SUM({})",
        "+{}",
        "-{}",
        '","{}","',
        "|{}|\n|---|",
        "[x](javascript:{})",
    ),
    *('\\",\\"x\\":{}', '{{"a": {}}}', "NULL", "'; DROP TABLE gpu_ops; --{}", "1e999", "NaN"),
)
SHAPES = (ELEMENTS, ELEMENTS, ATTRIBUTES, ADDRESSES, TEMPLATES, VEGA, TABLES)

CODINGS: tuple[Callable[[str], str], ...] = (
    *(str, str, str, str, html.escape, quote),
    lambda text: "".join(f"\\u{ord(c):04x}" for c in text),
    lambda text: "".join(f"&#{ord(c)};" for c in text),
    lambda text: text.replace("<", "\uff1c").replace(">", "\uff1e"),
    lambda text: text.replace("<", "<\u200b").replace("script", "scr\x00ipt"),
)

MARK = re.compile(r"zq(\d+)q")
"""Marker in each name, used to find the name on the page."""


def payloads(seed: int) -> Iterator[str]:
    """Yield an endless sequence of hostile names."""
    chance = random.Random(seed)
    number = 0
    while True:
        body = chance.choice(chance.choice(SHAPES)).format(chance.choice(CODE))
        coded = chance.choice(CODINGS)(body)
        yield f"{chance.choice(BEFORE)}zq{number}q{coded}{chance.choice(AFTER)}"
        number += 1


NAMED = (
    "kernel",
    "cpu_op",
    "user_annotation",
    "gpu_user_annotation",
    "python_function",
    "gpu_memcpy",
)
TEXTS = (
    "Process Group Name",
    "Process Group Description",
    "dtype",
    "Collective name",
    "Name",
    "Module Name",
)
"""Event arguments that reports show."""

KEPT = re.compile(r"nccl\w*|nn\.Module: |Memcpy \w+|aten::|record_param_comms|.*\.py\(\d+\): |##|")
"""Prefixes that determine the kind of an event and are therefore left in place."""

OTHERS = 12
"""Number of different hostile names that replace one original name within a category."""


def hostile(trace: dict[str, Any], names: Iterator[str]) -> dict[str, Any]:
    """Replace the names in a trace, but leave prefixes that determine the kind of an event."""
    chosen: dict[tuple[object, ...], str] = {}

    def other(*of: object) -> str:
        return chosen.setdefault(of, "") or chosen.update({of: next(names)}) or chosen[of]

    for number, event in enumerate(trace["traceEvents"]):
        name, category = event.get("name", ""), event.get("cat")
        if category in NAMED and not name.startswith("ProfilerStep"):
            told = other(category, name, number % OTHERS)
            event["name"] = (KEPT.match(name) or [""])[0] + told
        for key in TEXTS:
            if isinstance((event.get("args") or {}).get(key), str) and key != "Collective name":
                event["args"][key] = other(key, event["args"][key])
    for key, value in list(trace.items()):
        if isinstance(value, str):
            trace[key] = other("metadata", key)
    trace[next(names)] = next(names)
    for device in trace.get("deviceProperties", ()):
        device["name"] = other("device", device.get("name"))
    for group in trace.get("distributedInfo", {}).get("pg_config", ()):
        group |= {"pg_name": other("Process Group Name", group["pg_name"]), "pg_desc": next(names)}
    return trace


def hostile_job(folder: Path, names: Iterator[str]) -> Path:
    """Write the traces of a small job in which names are hostile; return their folder."""
    job = write_job(folder / "plain", JobSpec(ranks=2, steps=2, layers=2))
    traces = folder / "traces"
    traces.mkdir()
    for path in job.files:
        text = json.dumps(hostile(json.loads(gzip.decompress(path.read_bytes())), names))
        (traces / path.name.removesuffix(".gz")).write_text(text, "utf-8")
    return traces
