"""The records that leave this room: what one file was cut into.

What must stay true: `chunk.embedded_text == chunk.prefix + chunk.overlap + render(chunk.text)`, and `chunk.text`
is the text of `chunk.spans` joined with nothing between.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Span = tuple[int, int]
"""Half-open byte offsets into the file, or into the UTF-8 canonical text where a format has one."""

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file as it was read: its bytes and the names that take part in chunk ids."""

    data: bytes
    root: str
    path: bytes
    """Raw bytes of the path in the root, separated by b"/"."""


@dataclass(frozen=True, slots=True)
class CutSettings:
    """The `[chunking]` keys in force for one file. Tokens are those of the embedding model."""

    chunker: str = "auto"
    target_tokens: int = 500
    max_tokens: int = 800
    overlap_ratio: float = 0.12
    prefix: bool = True


@dataclass(frozen=True, slots=True)
class ModelBudget:
    """What the embedding model takes: `max_tokens` counts everything, special tokens and instruction included."""

    max_tokens: int = 256
    instruction: str = ""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A region of the file that is in no chunk, and the reason from the closed list."""

    span: Span
    reason: str


@dataclass(frozen=True, slots=True)
class Parent:
    """A real unit (section, class, table ...) that chunks belong to; stored, not embedded."""

    id: str
    kind: str
    title: str
    section: tuple[str, ...]
    span: Span
    start_line: int
    end_line: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """The unit that is embedded, stored and returned. Lines are 1-based and inclusive."""

    id: str
    kind: str
    section: tuple[str, ...]
    text: str
    prefix: str
    overlap: str
    embedded_text: str
    spans: tuple[Span, ...]
    overlap_spans: tuple[Span, ...]
    start_line: int
    end_line: int
    tokens: int
    """Tokens of instruction + embedded_text + special tokens, as the model counts them."""
    ordinal: int
    parent: str | None = None
    page: int | None = None
    locator: str | None = None
    language: str | None = None
    symbol: str | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """What became of one file. `skipped` is a reason code (binary, generated, unsupported ...) or None."""

    type: str
    chunker: str
    title: str
    recipe: str
    skipped: str | None = None
    detail: str = ""
    language: str | None = None
    encoding: str = "utf-8"
    chunks: tuple[Chunk, ...] = ()
    parents: tuple[Parent, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    metadata: dict[str, Json] = field(default_factory=dict)
    canonical_text: str | None = None
    warnings: tuple[str, ...] = ()
