"""The code in docs/record.md and README.md calls the handler and the commands as they are."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
from pathlib import Path

import click
import pytest

from hta_sql.cli import command_of
from hta_sql.torch import trace_handler
from tests.recording.with_torch import OF_FRAMEWORKS

ROOT = Path(__file__).parents[2]
PAGES = {
    name: (ROOT / name).read_text(encoding="utf-8") for name in ("docs/record.md", "README.md")
}


def blocks(page: str, language: str) -> list[str]:
    """Return the code blocks of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGES[page], re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_calls_of_the_handler_fit_its_signature(page: str) -> None:
    """Every block is valid Python, and passes only arguments that the handler has."""
    signature, count = inspect.signature(trace_handler), 0
    for block in blocks(page, "py"):
        # An ellipsis stands for other arguments, also after keywords.
        text = re.sub(r", \.\.\.\)", ")", block).replace("(..., ", "(")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "trace_handler":
                signature.bind(*node.args, **{one.arg or "": one.value for one in node.keywords})
                count += 1
    assert count >= {"docs/record.md": 4, "README.md": 1}[page]


def test_the_page_states_the_signature() -> None:
    """The page lists the arguments, their order and their defaults."""
    parameters = inspect.signature(trace_handler).parameters.values()
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    stated = str(inspect.Signature(plain))
    assert f"`trace_handler{stated}`" in PAGES["docs/record.md"]
    options = re.findall(r"^\| `(\w+)` \|", PAGES["docs/record.md"], re.MULTILINE)
    assert options == [p.name for p in plain]


def test_commands_of_the_page_are_parsed() -> None:
    """Each ``hta-sql`` command in a block has only options that exist."""
    lines = "\n".join(blocks("docs/record.md", "bash")).replace("\\\n", " ").splitlines()
    found = [line for line in lines if line.startswith("hta-sql ")]
    assert len(found) >= 3
    for line in found:
        _, name, *arguments = shlex.split(line)
        command = command_of(name)
        command.make_parser(click.Context(command)).parse_args(arguments)


def test_each_recipe_is_run_or_marked_as_read() -> None:
    """Each recipe has a line with the version that was run, or that was only read."""
    page = PAGES["docs/record.md"].split("\n## Frameworks\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", page, re.MULTILINE)[1:]
    lines = {framework: (version, status) for framework, version, status in rows}
    recipes = " and ".join(re.findall(r"^### (.+)", page, re.MULTILINE)).split(" and ")
    assert len(recipes) == 11
    assert [name for name in recipes if name not in lines] == []
    run = {name for name, (_, status) in lines.items() if status.startswith("run: ")}
    assert run == {"PyTorch, torchrun", "Lightning", "Accelerate", "Hugging Face Trainer"}
    assert set(OF_FRAMEWORKS) == {"lightning", "accelerate", "transformers"}
    for name in lines.keys() - run:
        version, status = lines[name]
        read = status == "read, not run" and re.search(r"\d|\([0-9a-f]{8}\)", version)
        assert read or (status.startswith("not run: ") and version == "\u2013"), name
