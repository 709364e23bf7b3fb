"""The canonical text of a page as it grows: blocks, the blank between them, and a locator for each place.

Must stay true: blocks are appended in order and never touched again; a locator holds from its offset to the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ragd.chunkers.document import Block

_TIGHT = frozenset(["list_item", "table_row", "table_header", "table_line"])
"""Kinds of blocks that stand on neighbouring lines among their like."""


@dataclass(slots=True)
class _Box:
    """An open element with an id, to which the first heading in it belongs."""

    anchor: str
    is_used: bool = False


@dataclass(slots=True)
class CanonicalText:
    """A text made of blocks. Anchors are the ids that a link to the page can name."""

    parts: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    locators: list[tuple[int, str]] = field(default_factory=list)
    _length: int = 0
    _boxes: list[_Box] = field(default_factory=list)
    _heading_anchor: str = ""
    _near_anchor: str = ""
    """The last anchor since the last block."""
    _own_anchor: str = ""
    """The anchor of the very element that the next block comes from."""

    def open_box(self, anchor: str) -> None:
        self._boxes.append(_Box(anchor))
        self._near_anchor = anchor

    def close_box(self) -> None:
        self._boxes.pop()

    def see_anchor(self, anchor: str, *, is_own: bool) -> None:
        self._near_anchor = anchor
        if is_own:
            self._own_anchor = anchor

    def add(
        self, kind: str, body: str, *, level: int = 0, text: str = "", language: str | None = None, line: int = 0
    ) -> None:
        """Append a block; `line` is the 1-based line of the source it began on, 0 if that is not known."""
        if self.blocks:
            before = self.blocks[-1].kind
            is_tight = kind in _TIGHT and (kind == before or (kind, before) == ("table_row", "table_header"))
            gap = "\n" if is_tight else "\n\n"
            self.parts.append(gap)
            self._length += len(gap)
        start = self._length
        self.parts.append(body)
        self._length += len(body)
        self.blocks.append(Block(kind, start, self._length, level, text, language))
        if kind == "heading":
            self._heading_anchor = self._own_anchor or self._near_anchor or self._box_anchor()
        anchor = self._own_anchor or self._heading_anchor
        self._near_anchor = self._own_anchor = ""
        locator = f"#{anchor}" if anchor else f"line {line}" if line else ""
        if locator and (not self.locators or self.locators[-1][1] != locator):
            self.locators.append((start, locator))

    def _box_anchor(self) -> str:
        """The anchor of the innermost open element, if no heading stood in it before."""
        if not self._boxes or self._boxes[-1].is_used:
            return ""
        self._boxes[-1].is_used = True
        return self._boxes[-1].anchor
