"""Rules of the message catalog: messages are in sql/messages, and their codes and fields agree.

A released analysis is frozen without the wording of its messages (see frozen.py). These rules check
what it relies on: each code exists, and the template has a placeholder for each field that the
analysis fills.
"""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from hta_sql.errors import LibraryError
from hta_sql.library.definitions import tokens
from hta_sql.library.messages import Message, catalogue_files, read_messages
from hta_sql.library.objects import Library, SqlObject
from hta_sql.library.rules.problem import Found, Problem, code_line, located

_SENTENCE = re.compile(r"\w+(?:[^\w.]+\w+){2,}.*\.", re.DOTALL)
_WORDS = re.compile(r"[A-Za-z]{2,}(?:,? [A-Za-z]{2,}){2,}")
_QUERY = re.compile(r"(FROM|SELECT|WITH|WHERE| WHERE)\b")
_CODE = re.compile(r"'([a-z]\w*)\.(\w+)'")
_FORMATTERS = ("printf", "format")
_MESSAGE = ["lib", ".", "message", "("]
_WITH_FIELDS = ["lib", ".", "with_fields", "("]


@dataclass(frozen=True)
class Use:
    """A message that an object emits: its code and the fields that it fills.

    ``from_table`` is whether a built-in table that the object reads has the code. All codes of a
    table share their fields, and a template need not show all of them.
    """

    about: SqlObject
    code: str
    fields: frozenset[str]
    from_table: bool = False


def message_problems(library: Library, root: Path) -> Iterator[Problem]:
    """Yield sentences outside the catalog, and codes, fields and placeholders that do not agree."""
    files = (*library.macros, *library.analyses, *library.derived)
    for about in files:
        yield from (located(about, found) for found in _sentences(about))
    catalogue: dict[str, tuple[Path, int, Message]] = {}
    formats = _formats(library)
    for path, messages in _catalogue(root):
        if isinstance(messages, LibraryError):
            yield Problem(path, 1, str(messages).partition(": ")[2].rstrip("."))
            continue
        for line, message in enumerate(messages, 2):
            if message.code in catalogue:
                yield Problem(path, line, f"code {message.code} is in the catalogue twice")
            catalogue[message.code] = path, line, message
            yield from (Problem(path, line, text) for text in _template_problems(message, formats))
    groups = {code.partition(".")[0] for code in catalogue}
    groups |= {about.base_name for about in files}
    uses = [use for about in files for use in _uses(about, groups)]
    uses += [use for about in files for use in _uses_of_tables(about, library)]
    yield from _unknown(uses, catalogue)
    shared = _shared_fields(library)
    for use in uses:
        if use.code in catalogue:
            message = catalogue[use.code][2]
            for text in _field_problems(use, message, shared[use.about.path]):
                yield located(use.about, (_line_of(use), text))
    templates = {code: message for code, (_, _, message) in catalogue.items()}
    yield from _unused_fields(library, uses, templates)
    for code in catalogue.keys() - {use.code for use in uses}:
        path, line, _ = catalogue[code]
        yield Problem(path, line, f"no analysis or macro returns the code {code}; remove it")


def _catalogue(root: Path) -> Iterator[tuple[Path, list[Message] | LibraryError]]:
    for path in catalogue_files(root):
        try:
            yield path, read_messages(path)
        except LibraryError as error:
            yield path, error


def _unknown(uses: Iterable[Use], catalogue: Iterable[str]) -> Iterator[Problem]:
    known = set(catalogue)
    for use in uses:
        if use.code not in known:
            text = f"the code {use.code} is not in sql/messages; add a line for it"
            yield located(use.about, (_line_of(use), text))


def _line_of(use: Use) -> str:
    return code_line("lib.message" if use.from_table else f"'{use.code}'")


def _field_problems(use: Use, message: Message, shared: set[str]) -> Iterator[str]:
    names = {name for name, _ in message.placeholders}
    for name in sorted(names - use.fields - shared):
        yield f"it does not fill the placeholder {{{name}}} of the message {use.code}"
    for name in () if use.from_table else sorted(use.fields - names):
        yield f"it fills {name}, but the message {use.code} has no placeholder {{{name}}}"


def _template_problems(message: Message, formats: set[str]) -> Iterator[str]:
    if not message.message:
        yield f"message {message.code} has no text"
    if re.search(r"[{}]", message.text_outside):
        yield f"message {message.code} has a brace outside of its placeholders"
    for name, form in message.placeholders:
        if form and "|" not in form and form not in formats:
            known = ", ".join(sorted(formats))
            yield f"message {message.code}: {{{name}:{form}}} has no format of lib.message_text: {known}"


def _formats(library: Library) -> set[str]:
    """Return the formats that lib.message_text knows."""
    rendering = [macro.text for macro in library.macros if macro.name == "message_text"]
    return set(re.findall(r"part\.form = '(\w+)'", "".join(rendering)))


def _sentences(about: SqlObject) -> Iterator[Found]:
    """Yield string literals that are sentences, and format strings of several words."""
    words = tokens(about.text)
    for at, word in enumerate(words):
        text = word.strip("'")
        if not word.startswith("'") or _QUERY.match(text):
            continue
        is_formatted = at >= 2 and words[at - 1] == "(" and words[at - 2] in _FORMATTERS
        if _SENTENCE.fullmatch(text) or (is_formatted and _WORDS.search(text)):
            yield (
                code_line(text.split("''")[0][:40]),
                f"it contains the sentence {text[:40]!r}; move it to sql/messages and return lib.message",
            )


def _uses(about: SqlObject, groups: set[str]) -> Iterator[Use]:
    """Yield the calls to lib.message, and message codes outside of such calls."""
    words = tokens(about.text)
    for at, word in enumerate(words):
        found = _CODE.fullmatch(word)
        if found and found[1] in groups:
            called = words[at - 4 : at] == _MESSAGE
            fields = _keys(words, at + 2) if called else frozenset()
            yield Use(about, word.strip("'"), fields)


def _uses_of_tables(about: SqlObject, library: Library) -> Iterator[Use]:
    """Yield the messages whose codes an object reads from built-in tables."""
    words = tokens(about.text)
    calls = [at + 4 for at in range(len(words)) if words[at : at + 4] == _MESSAGE]
    computed = [at for at in calls if not words[at].startswith("'")]
    for table in library.tables if computed and about.name != "message" else ():
        path = table.path.with_suffix(".csv")
        if table.name in about.words and path.exists():
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            codes = {row[name] for row in rows for name in row if name.endswith("code")} - {""}
            fields = frozenset().union(*(_keys(words, words.index("{", at)) for at in computed))
            yield from (Use(about, code, fields, from_table=True) for code in sorted(codes))


def _shared_fields(library: Library) -> dict[Path, set[str]]:
    """Return the fields that analyses add to all messages of the files below them, by file path."""
    shared: dict[Path, set[str]] = defaultdict(set)
    for analysis in library.analyses:
        if names := _added_fields(analysis):
            for one in library.stands_on(analysis):
                shared[one.path] |= names
    return shared


def _unused_fields(
    library: Library, uses: Iterable[Use], templates: Mapping[str, Message]
) -> Iterator[Problem]:
    """Yield the fields that an analysis adds to all of its messages, but that no template shows."""
    for analysis in filter(_added_fields, library.analyses):
        under = {one.path for one in library.stands_on(analysis)}
        codes = {use.code for use in uses if use.about.path in under} & templates.keys()
        shown = {name for code in codes for name, _ in templates[code].placeholders}
        for name in sorted(_added_fields(analysis) - shown):
            text = f"it fills {name}, but no message has a placeholder {{{name}}}"
            yield located(analysis, (code_line("lib.with_fields"), text))


def _added_fields(analysis: SqlObject) -> frozenset[str]:
    if "with_fields" not in analysis.words:
        return frozenset()
    words = tokens(analysis.text)
    calls = [at for at in range(len(words)) if words[at : at + 4] == _WITH_FIELDS]
    return frozenset().union(*(_keys(words, words.index("{", at)) for at in calls))


def _keys(words: list[str], at: int) -> frozenset[str]:
    """Return the field names of a struct literal that begins with a token."""
    if words[at : at + 1] != ["{"]:
        return frozenset()
    depth, keys = 0, set()
    for place in range(at, len(words)):
        depth += (words[place] in "([{") - (words[place] in ")]}")
        if depth == 0:
            break
        if depth == 1 and words[place] == ":" and words[place - 1].startswith("'"):
            keys.add(words[place - 1].strip("'"))
    return frozenset(keys)
