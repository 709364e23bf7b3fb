"""Plain text: paragraphs, and lines that stand like a chapter heading.

What must stay true: every non-blank line is in exactly one block; blocks are whole lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragd.chunkers.document import Block, Document

_PARAGRAPH = re.compile(r"(?:[^\r\n]*\S[^\r\n]*(?:\r\n|\r|\n|\Z))+")
_CHAPTER = re.compile(
    r"(?:chapter|part|book|act|scene|section|appendix|prologue|epilogue|preface|introduction|kapitel|teil|chapitre"
    r"|cap[ií]tulo|глава|часть)\b[ \t]*(?:[\divxlcdm]+|[^\W\d_]{1,12})?[.:]?(?:[ \t]+.{0,60})?",
    re.IGNORECASE,
)
_MOST_HEADING_CHARS = 80
_LEAST_BLANK_LINES = 2
_NO_TITLE = re.compile(r":|[.,;!?\"'”’)…—–-]\Z")
"""Speech and broken sentences have such signs."""


def parse(text: str, *, name: str) -> Document:
    """Text to paragraphs and headings. A heading is one short line that names a chapter, after a blank line; or one in
    title case or capitals after two of them: not at the start of the text, where the next edit would undo it."""
    del name  # the stem stands in as title elsewhere
    document = Document(text=text, type="text")
    end_before = 0
    for start, end in _paragraphs(text):
        blank_lines = _line_ends(text[end_before:start]) if end_before else 1
        line = text[start:end].strip()
        if _is_heading(line, blank_lines) and _something_follows(text, end):
            document.blocks.append(Block("heading", start, end, level=1, text=" ".join(line.split())))
        else:
            document.blocks.append(Block("paragraph", start, end))
        end_before = end
    return document


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    """Spans of runs of non-blank lines, without the last line end."""
    for match in _PARAGRAPH.finditer(text):
        yield match.start(), match.start() + len(match.group().rstrip("\r\n"))


def _line_ends(gap: str) -> int:
    """Blank lines in the gap between two paragraphs."""
    return gap.count("\n") + gap.count("\r") - gap.count("\r\n") - 1


def _something_follows(text: str, end: int) -> bool:
    return bool(text[end : end + 400].strip())


def _is_heading(line: str, blank_lines: int) -> bool:
    if not line or len(line) > _MOST_HEADING_CHARS or "\n" in line or "\r" in line:
        return False
    if blank_lines >= 1 and _CHAPTER.fullmatch(line) and line[-1] not in ".,;!?":
        return True
    words = line.split()
    letters = [word for word in words if word[:1].isalpha()]
    if blank_lines < _LEAST_BLANK_LINES or not letters or len(words) > 10 or _NO_TITLE.search(line):
        return False
    long_words = [word for word in letters if len(word) > 3] or letters
    return all(word[0].isupper() for word in long_words)
