"""Write signatures.csv with torch 2.13 (CPU): ``python record.py PATTERNS > signatures.csv``.

PATTERNS is a file with one regular expression per line. Among the overloads of an operator, the
script selects one that takes tensors, with dimensions if possible.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path
from typing import Any

import torch

FORMS = ("self", "", "dim", "dim_IntList", "ScalarOpt_dim", "Tensor", "Tensor_Tensor", "Scalar")


def worth(schema: Any) -> tuple[int, int]:
    """Return the sort key of an overload: with dimensions first, then in the order of FORMS."""
    names = [argument.name for argument in schema.arguments]
    return "dim" not in names, FORMS.index(schema.overload_name)


def main(patterns: Path) -> None:
    """Write the name, the number of leading tensors and the argument names of each operator."""
    wanted = re.compile("|".join(patterns.read_text(encoding="utf-8").split()))
    forms: dict[str, list[Any]] = {}
    for schema in torch._C._jit_get_all_schemas():
        is_called = bool(schema.arguments) and str(schema.arguments[0].type) == "Tensor"
        if wanted.fullmatch(schema.name) and schema.overload_name in FORMS and is_called:
            forms.setdefault(schema.name, []).append(schema)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(("operator", "tensor_count", "arguments"))
    for name in sorted(forms):
        arguments = min(forms[name], key=worth).arguments
        kinds = [str(argument.type) == "Tensor" for argument in arguments]
        names = " ".join(argument.name for argument in arguments)
        writer.writerow((name, (*kinds, False).index(False), names))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
