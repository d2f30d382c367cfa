"""Replaces private names with a keyed hash; public names are kept, and equal names stay equal."""

from __future__ import annotations

import hashlib
import itertools
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field

from hta_sql.exports.redaction.frame_names import frame_parts
from hta_sql.exports.redaction.kernels import kernel_tokens
from hta_sql.exports.redaction.public import all_words, listed, meaning_of, patterns

EXAMPLES = 3
"""Maximum number of examples per kind in a summary."""

SAME_RULES = {"operator": ("operator", "annotation"), "annotation": ("annotation", "operator")}
"""Kind of name ─▶ kinds whose rules apply: record_function may record one kind as the other."""

_CAPTURE = re.compile(r"(.*?)(-capture\d+)?", re.DOTALL)
_ODD = re.compile(r"[^\x20-\x7e]")
"""Characters that no public name contains; names with such a character are always hashed."""
_TOKEN = re.compile(r"[^\W_]+")


@dataclass
class Seen:
    """Statistics of the redacted names of one kind.

    Attributes:
        kept: Number of distinct names that were retained.
        replaced: Number of distinct names that were replaced.
        kept_examples: Examples of retained names.
        replaced_examples: Examples of replaced names, each with its replacement.
    """

    kept: int = 0
    replaced: int = 0
    kept_examples: list[str] = field(default_factory=list)
    replaced_examples: list[tuple[str, str]] = field(default_factory=list)


class Redactor:
    """Replaces names one by one, and records statistics.

    Args:
        key: Redactions with the same key map equal names to equal hashes. Whoever has the key can
            test whether a guessed name occurs. Default: a random key, which is not stored.

    Attributes:
        seen: Kind of name ─▶ its statistics.
        strangers: Number of names whose hash lacks information that analyses read from the name.
    """

    def __init__(self, key: str | None = None) -> None:
        text = secrets.token_hex(32) if key is None else key
        self._key = hashlib.sha512(text.encode("utf-8", "surrogatepass")).digest()
        self._known: dict[tuple[str, str], str] = {}
        self.seen: dict[str, Seen] = {}
        self.strangers = 0

    def __call__(self, kind: str, name: str) -> str:
        """Return the redacted form of a name.

        Args:
            kind: Kind of the name: operator, kernel, annotation, frame, host, …
            name: The name.
        """
        known = self._known.get((kind, name)) if name else name
        if known is None:
            known = self._known[kind, name] = self._new(kind, name)
            self._note(kind, name, known)
        return known

    def hashed(self, kind: str, name: str) -> str:
        """Return the hash of a name, for kinds of names that are never public."""
        digest = hashlib.blake2b(
            name.encode("utf-8", "surrogatepass"), key=self._key, digest_size=6
        )
        return f"{kind}_{digest.hexdigest()}"

    def drop(self, kind: str, name: str) -> None:
        """Record a dropped name."""
        if (kind, name) not in self._known:
            self._known[kind, name] = ""
            self._note(kind, name, "")

    def _note(self, kind: str, name: str, new: str) -> None:
        seen = self.seen.setdefault(kind, Seen())
        if new == name:
            seen.kept += 1
            seen.kept_examples += [name] if len(seen.kept_examples) < EXAMPLES else []
        else:
            seen.replaced += 1
            if len(seen.replaced_examples) < EXAMPLES:
                seen.replaced_examples.append((name, new))

    def _new(self, kind: str, name: str) -> str:
        if kind == "run":
            stem, capture = _CAPTURE.fullmatch(name).groups()  # type: ignore[union-attr]  # it matches every text
            return self.hashed(kind, stem) + (capture or "")
        if kind == "stack":
            return ";".join(self("frame", part) for part in name.split(";"))
        candidates = self._candidates(kind, name)
        new = first = next(candidates)
        meaning = meaning_of(kind, name)
        while meaning_of(kind, new) != meaning:
            new = next(candidates, "")
            if not new:
                self.strangers += 1
                return first
        return new

    def _candidates(self, kind: str, name: str) -> Iterator[str]:
        """Yield the new name, then variants with public words of the old name after the hash."""
        yield self._renamed(kind, name, "")
        words = [word for word in sorted(listed("hint")) if word.lower() in name.lower()]
        for chosen in (*itertools.permutations(words, 1), *itertools.permutations(words, 2), words):
            hint = "_".join(word.strip("_") for word in chosen)
            yield self._renamed(kind, name, f"_{hint}_")
            yield self._renamed(kind, name, hint)

    def _renamed(self, kind: str, name: str, hint: str) -> str:
        """Return the name as redacted by a rule for public names, or its hash."""
        if _ODD.search(name):
            return self._private(kind, name, hint)
        if kind == "kernel" and all(
            is_public for _, is_public in kernel_tokens(name) or [("", False)]
        ):
            return name
        for rules in SAME_RULES.get(kind, (kind,)):
            for pattern in patterns(rules):
                if found := pattern.fullmatch(name):
                    return self._with_parts(found, hint)
        return self._private(kind, name, hint)

    def _with_parts(self, found: re.Match[str], hint: str) -> str:
        name, new, position = found.string, "", 0
        for group in found.re.groupindex:
            start, end = found.span(group)
            if start >= 0:
                part = self._part(group.rstrip("0123456789"), name[start:end])
                if part != name[start:end]:
                    part, hint = part + hint, ""
                new += name[position:start] + part
                position = end
        return new + name[position:]

    def _part(self, group: str, text: str) -> str:
        if group == "words":
            return text if all_words(text) else self.hashed("name", text)
        if group == "tokens":
            return _TOKEN.sub(lambda token: self._token(token.group()), text)
        if patterns(group):
            return self(group, text)
        return text if text in listed(group) else self.hashed(group, text)

    def _token(self, token: str) -> str:
        return token if all_words(token) else self.hashed("x", token)

    def _private(self, kind: str, name: str, hint: str) -> str:
        if kind == "frame":
            return "".join(
                text if part is None else self.hashed(part, text)
                for part, text in frame_parts(name)
            )
        if kind == "kernel":
            return self._kernel(name, hint)
        return self.hashed(kind, name) + hint.rstrip("_")

    def _kernel(self, name: str, hint: str) -> str:
        tokens = kernel_tokens(name)
        if tokens is None:
            return self.hashed("kernel", name) + hint.rstrip("_")
        new, is_first = [], True
        for text, is_public in tokens:
            if is_public:
                new.append(text)
                continue
            new.append(self.hashed("kernel" if is_first else "id", text) + hint * is_first)
            is_first = False
        return "".join(new)
