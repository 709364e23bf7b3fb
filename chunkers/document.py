"""What parsers hand to strategies (blocks), and strategies to the packing engine (atoms in regions).

All offsets here are character offsets into `Document.text`; only the assembly turns them into bytes.
What must stay true: blocks and atoms are disjoint, in order, and whatever lies between two of them is blank or
listed in `Document.dropped`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ragd.chunkers.records import Json

GLUED = math.inf
"""Cost of a cut that must never be made."""


@dataclass(slots=True)
class Block:
    """A typed piece of a document: heading, paragraph, list_item, fence, table_header, table_row (under that
    header), table_line (a row of a table without one), function ..."""

    kind: str
    start: int
    end: int
    level: int = 0
    """Heading level, nesting depth of a list item or of a definition."""
    text: str = ""
    """Heading text, table header, signature ... whatever the kind names; not the source slice."""
    language: str | None = None
    symbol: str | None = None
    scope: str | None = None
    """The definition this one belongs to though it stands elsewhere: the receiver of a Go method."""
    children: list[Block] = field(default_factory=list)


@dataclass(slots=True)
class Document:
    """A parsed file. `text` is the decoded file, or the canonical text where the bytes are not the text."""

    text: str
    type: str
    blocks: list[Block] = field(default_factory=list)
    title: str | None = None
    """The format's own title (front matter, single H1, <title>); None lets the file's stem stand in."""
    sole_heading: str | None = None
    """Text of the document's only top-level heading, if there is just one: where the file's stem stands in for the
    title, prefixes under that heading leave the stem out."""
    language: str | None = None
    metadata: dict[str, Json] = field(default_factory=dict)
    dropped: list[tuple[int, int, str]] = field(default_factory=list)
    canonical: bool = False
    locators: list[tuple[int, str]] = field(default_factory=list)
    """For canonical texts: (offset from which it holds, locator), ascending."""
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Unit:
    """A parent-to-be: a real unit of the document in character offsets."""

    kind: str
    title: str
    section: tuple[str, ...]
    start: int
    end: int


@dataclass(slots=True)
class Atom:
    """The smallest piece a chunk is packed from; it is split further only when it alone is over the budget."""

    start: int
    end: int
    cost: float
    """Price of a cut before this atom: 0 is the best place, 1 a bad one, GLUED forbids it."""
    kind: str
    section: tuple[str, ...] = ()
    """Section path that holds for this atom, its own heading included."""
    heading: str | None = None
    """The heading's text, if this atom is a heading (a prefix never repeats it beside the atom)."""
    split: str = "prose"
    """How it is split when too large: prose (sentence, phrase, word), lines, or never below words."""
    context: str = ""
    """Text a chunk holding this atom needs in its prefix unless its body holds `context_from` (table header,
    signature); whole lines without the final newline."""
    context_from: int = -1
    """Start offset of the atom that says the same as `context`; -1: none."""
    rendered: str | None = None
    """What is embedded in place of the source slice (table rows as `column: value`)."""
    unit: int = -1
    """Index into the list of units: the parent of this atom."""
    language: str | None = None
    symbol: str | None = None
    overlap: bool = False
    """Whether this atom may be repeated as overlap in front of the next chunk."""


@dataclass(slots=True)
class Region:
    """A run of atoms between two hard boundaries: no chunk crosses its ends."""

    atoms: list[Atom]
    """Ascending and disjoint."""
    target_tokens: int | None = None
    """What a chunk of this region aims at where that is less than the setting (short table rows)."""


@dataclass(slots=True)
class Outline:
    """What a strategy made of a document: the packing engine needs nothing else."""

    regions: list[Region]
    units: list[Unit] = field(default_factory=list)
