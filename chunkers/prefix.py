"""The prefix of a chunk: `title > section path` on one line, then the context its body needs (a table header, a
signature) on lines of its own.

What must stay true: no heading that stands in the body and nothing twice; the last element of the path is the last
to go; title and path take at most a quarter of the ceiling. Context comes first where room is short, because a row
without its column names says nothing: it may take up to half of the ceiling where a quarter is too little for it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ragd.chunkers.decode import unified_newlines
from ragd.chunkers.document import Atom
from ragd.chunkers.limits import Limits
from ragd.chunkers.splitting import CHARS_PER_TOKEN
from ragd.chunkers.tokens import TokenCounter

SEPARATOR = " > "
_CUT = "…"
_BLANKS = re.compile(r"\s+")
_DELIMITER_ROW = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")


class PrefixMaker:
    """Makes the prefixes of one document; remembers what it counted."""

    def __init__(self, title: str, sole_heading: str | None, counter: TokenCounter, limits: Limits) -> None:
        self._title = title
        self._sole_heading = sole_heading
        self._limits = limits
        self._count = lru_cache(maxsize=65536)(counter.count)
        self._line = lru_cache(maxsize=65536)(self._shortened_line)
        self._context = lru_cache(maxsize=65536)(self._shortened_context)
        self._lead = lru_cache(maxsize=65536)(self._lead_tokens)

    def prefix(self, atoms: Sequence[Atom], section: Sequence[str], room_tokens: int | None = None) -> str:
        """The prefix of a body made of `atoms`, each line with its newline; `room_tokens` squeezes it further."""
        if not self._limits.with_prefix:
            return ""
        room = self._limits.ceiling_tokens if room_tokens is None else max(0, room_tokens)
        context = self._context(missing_context(atoms), min(room, self._limits.ceiling_tokens // 2))
        left = min(room, self._limits.prefix_tokens) - self._count(context) if context else room
        line = self._line(self._elements(atoms, section), max(0, min(left, self._limits.prefix_tokens)))
        return (line + "\n" if line else "") + (context + "\n" if context else "")

    def lead_tokens(self, atom: Atom) -> int:
        """About what the prefix of a run takes that starts with `atom`."""
        return self._lead(atom.section, atom.heading, missing_context([atom]))

    def _lead_tokens(self, section: tuple[str, ...], heading: str | None, context: str) -> int:
        stand_in = Atom(0, 0, 0.0, "", section, heading, context=context)
        return self._count(self.prefix([stand_in], section))

    def _elements(self, atoms: Sequence[Atom], section: Sequence[str]) -> tuple[str, ...]:
        standing = {_folded(atom.heading) for atom in atoms if atom.heading is not None}
        path = [self._title, *section]
        if self._sole_heading is not None and section and section[0] == self._sole_heading:
            path = list(section)
        elements: list[str] = []
        seen: set[str] = set(standing)
        for element in reversed(path):
            folded = _folded(element)
            if folded and folded not in seen:
                seen.add(folded)
                elements.append(_BLANKS.sub(" ", element).strip())
        return tuple(reversed(elements))

    def _shortened_line(self, elements: tuple[str, ...], limit: int) -> str:
        """Shorten from the middle: the title goes first, then the path's inner elements, then the last one's end."""
        if not elements or limit < 1:
            return ""
        kept = [cut for cut in (self._cut_words(element, limit) for element in elements) if cut]
        line = SEPARATOR.join(kept)
        if self._count(line) <= limit:
            return line
        kept = kept[1:] if len(kept) > 1 else kept
        while len(kept) > 2 and self._count(SEPARATOR.join(kept)) > limit:
            del kept[len(kept) // 2 - (0 if len(kept) % 2 else 1) or 1]
        if len(kept) == 2 and self._count(SEPARATOR.join(kept)) > limit:
            kept = kept[1:]
        return self._cut_words(SEPARATOR.join(kept), limit)

    def _shortened_context(self, context: str, limit: int) -> str:
        if not context or self._count(context) <= limit:
            return context
        lines = context.split("\n")
        shortest = [re.sub("-+", "-", line) if _DELIMITER_ROW.fullmatch(line) else line for line in lines]
        if self._count("\n".join(shortest)) <= limit:
            return "\n".join(shortest)
        return self._cut_words("\n".join(line for line in lines if not _DELIMITER_ROW.fullmatch(line)), limit)

    def _cut_words(self, text: str, limit: int) -> str:
        """The longest beginning of whole words that fits, with an ellipsis where something is missing."""
        if limit < 1:
            return ""
        if len(text) <= limit * CHARS_PER_TOKEN and self._count(text) <= limit:
            return text
        words = text[: limit * CHARS_PER_TOKEN].split(" ")
        low, high = 0, len(words)
        while low < high:  # largest number of words that fits
            middle = (low + high + 1) // 2
            if self._count(" ".join(words[:middle]) + _CUT) <= limit:
                low = middle
            else:
                high = middle - 1
        return " ".join(words[:low]).rstrip() + _CUT if low and " ".join(words[:low]).strip() else ""


def missing_context(atoms: Sequence[Atom]) -> str:
    """The contexts that the atoms need and the body does not hold, each once, in order."""
    starts = {atom.start for atom in atoms}
    wanted: dict[str, None] = {}
    for atom in atoms:
        if atom.context and atom.context_from not in starts:
            wanted[compact_context(atom.context)] = None
    return "\n".join(wanted)


@lru_cache(maxsize=1024)
def compact_context(context: str) -> str:
    """A context with \\n line ends, its table delimiter row as short as a table allows."""
    lines = unified_newlines(context).strip("\n").split("\n")
    return "\n".join(_compact_delimiter(line) if _DELIMITER_ROW.fullmatch(line) else line for line in lines)


def _compact_delimiter(line: str) -> str:
    """`|:-----|----:|` as `|:---|---:|`: each dash is a token of its own in most models."""
    return re.sub(r"-+", "---", line.replace(" ", ""))


def _folded(text: str) -> str:
    return _BLANKS.sub(" ", text).strip().casefold()
