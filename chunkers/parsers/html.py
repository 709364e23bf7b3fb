"""HTML to a canonical text: what a reader sees of the page, block by block, and where in the source it stood.

The text reads like Markdown: list markers, table pipes, blank lines between blocks, preformatted text as it is. The
tree is the one the HTML standard's own parsing rules give (justhtml), so unclosed and misnested tags mean what they
mean in a browser.

Must stay true: every character of the canonical text that is not blank is in exactly one block; nothing recurses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from justhtml import JustHTML, Node

from ragd.chunkers.document import Document
from ragd.chunkers.parsers.html_page import (
    BLOCKS,
    HEADINGS,
    PREFORMATTED,
    Survey,
    attribute,
    children,
    is_code_only,
    is_dropped,
    survey,
)
from ragd.chunkers.parsers.html_preformatted import code_language, verbatim
from ragd.chunkers.parsers.html_tables import Table, row_text, table_of
from ragd.chunkers.parsers.html_text import CanonicalText

_BLANKS = re.compile(r"\s+")
_DEEPEST_LIST = 8
_TERM_LEVEL = 3
"""A described term (of an API page, say) is a heading one level below this, deeper ones below that."""
_MOST_LINK_SHARE = 0.5
_RELEASING = frozenset(["ul", "ol", "menu", "dir", "dl", "blockquote", "table"])
"""A term in front of one of these is no part of its first text."""
_BOXES = frozenset(["section", "article", "details", "div", "main", "body", "hgroup", "header"])
"""Elements whose id the first heading in them goes by."""
_OWN_ANCHORS = frozenset(["p", "li", "dt", "dd", "figure", *HEADINGS])
"""Elements whose id the block goes by that begins in them."""


def parse(text: str, *, name: str) -> Document:
    """Blocks of the kinds that Markdown has; locators are `#anchor`, or `line N` of the source."""
    del name  # the stem stands in as title elsewhere
    root = JustHTML(text, sanitize=False, track_node_locations=True).root
    found = survey(root)
    writer = _Writer(found)
    writer.write(root)
    if not writer.out.blocks:  # a page of nothing but navigation, or one for browsers without scripts
        root = JustHTML(text, sanitize=False, track_node_locations=True, scripting_enabled=False).root
        writer = _Writer(survey(root), keep_all=True)
        writer.write(root)
    document = Document(
        text="".join(writer.out.parts),
        type="html",
        blocks=writer.out.blocks,
        language=found.language.partition("-")[0].lower() or None,
        canonical=True,
        locators=writer.out.locators,
    )
    for key, value in (("description", found.description), ("lang", found.language), ("page_title", found.title)):
        if value:
            document.metadata[key] = value
    _set_title(document, found)
    return document


def _set_title(document: Document, found: Survey) -> None:
    """A single H1 before other text, else the title the page has for itself."""
    document.title = found.title or found.social_title or None
    top = [block for block in document.blocks if block.kind == "heading" and block.level == 1]
    if len(top) == 1:
        document.sole_heading = top[0].text
        if document.blocks[0] is top[0]:
            document.title = top[0].text


@dataclass(slots=True)
class _List:
    """An open list, or an open description list."""

    ordered: bool
    number: int = 0


@dataclass(slots=True)
class _Writer:
    """Walks the tree with a stack of its own and writes blocks."""

    found: Survey
    keep_all: bool = False
    out: CanonicalText = field(default_factory=CanonicalText)
    inline: list[str] = field(default_factory=list)
    inline_line: int = 0
    link_chars: int = 0
    links: int = 0
    """How many links are open."""
    mains: int = 0
    """How many main parts are open."""
    lists: list[_List] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    """The marker of each open list item; an empty string once it is written."""
    quotes: int = 0
    terms: int = 0
    """How many description lists are open."""
    long_terms: set[int] = field(default_factory=set)
    """`id()` of terms whose description is more than one paragraph."""
    held: str = ""
    """A term or summary that waits for the text it introduces."""
    held_line: int = 0

    def write(self, root: Node) -> None:
        stack: list[tuple[Node, bool]] = [(root, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                self._leave(node)
            elif node.name == "#text":
                self._add_text(node)
            elif self._skips(node):
                continue
            elif node.name == "br":
                self.inline.append("\n")
            elif node.name in PREFORMATTED:
                self._write_preformatted(node)
            elif node.name == "table" and self._write_table(node):
                continue
            else:
                self._enter(node)
                stack.append((node, True))
                stack.extend((child, False) for child in reversed(children(node)))
        self._flush()
        self._release()

    def _skips(self, node: Node) -> bool:
        if self.keep_all:
            return is_code_only(node)
        return id(node) not in self.found.around_mains and is_dropped(node, outside_main=self._is_outside)

    @property
    def _is_outside(self) -> bool:
        return bool(self.found.mains) and not self.mains

    def _add_text(self, node: Node) -> None:
        data = str(node.data or "")
        if not self.inline_line and data.strip():
            self.inline_line = node.origin_line or 0
        data = _BLANKS.sub(" ", data)
        self.inline.append(data)
        if self.links:
            self.link_chars += len(data)

    def _enter(self, node: Node) -> None:
        name = node.name
        if name in BLOCKS:
            self._flush()
        anchor = attribute(node, "id") or (attribute(node, "name") if name == "a" else "")
        if anchor and name in _BOXES:
            self.out.open_box(anchor)
        elif anchor:
            self.out.see_anchor(anchor, is_own=name in _OWN_ANCHORS)
        if id(node) in self.found.mains:
            self.mains += 1
        if name == "a":
            self.links += 1
        elif name in ("ul", "ol", "menu", "dir"):
            start = attribute(node, "start")
            first = int(start) if start.isascii() and start.isdigit() and len(start) < 9 else 1
            self.lists.append(_List(name == "ol", first))
        elif name == "li":
            self.items.append(self._marker())
        elif name == "blockquote":
            self.quotes += 1
        elif name == "dl":
            self.terms += 1
        if name in ("dl", "div"):
            self.long_terms.update(_long_terms(node))
        if name in _RELEASING:
            self._release()

    def _marker(self) -> str:
        if not self.lists or not self.lists[-1].ordered:
            return "- "
        self.lists[-1].number += 1
        return f"{self.lists[-1].number - 1}. "

    def _leave(self, node: Node) -> None:
        name = node.name
        if name in HEADINGS:
            self._write_heading(HEADINGS[name])
        elif name == "dt":
            self._write_term(node)
        elif name == "summary":
            self._hold(self._take())
        elif name in BLOCKS:
            self._flush()
        if id(node) in self.found.mains:
            self.mains -= 1
        if name in _BOXES and attribute(node, "id"):
            self.out.close_box()
        if name == "a":
            self.links -= 1
        elif name in ("ul", "ol", "menu", "dir"):
            self.lists.pop()
        elif name == "li":
            self.items.pop()
        elif name == "blockquote":
            self.quotes -= 1
        elif name == "dl":
            self._release()
            self.terms -= 1
        elif name == "details":
            self._release()

    def _take(self) -> str:
        """The text gathered since the last block, on one line for each `<br>`."""
        raw = "".join(self.inline).replace("\u00ad", "")
        self.inline.clear()
        lines = (" ".join(line.split()) for line in raw.split("\n"))
        return "\n".join(line for line in lines if line)

    def _flush(self) -> None:
        """Write the gathered text as a block of the kind that is open."""
        if not self.inline:
            return
        links = self.link_chars
        text = self._take()
        if not text:
            self._start_over()
            return
        if self._is_boilerplate(links, len(text)):
            self._start_over()
            return
        if self.held:
            text, self.inline_line = f"{self.held}\n{text}", self.held_line
            self.held = ""
            self._write("list_item", text, level=max(1, len(self.items)))
        elif self.items:
            marker, self.items[-1] = self.items[-1], ""
            depth = min(len(self.items), _DEEPEST_LIST)
            indent = "  " * (depth - 1) + ("" if marker else "  ")
            body = text.replace("\n", "\n" + indent + " " * len(marker))
            self._write("list_item" if marker else "paragraph", f"{indent}{marker}{body}", level=depth)
        else:
            self._write("quote" if self.quotes else "paragraph", text)

    def _is_boilerplate(self, link_chars: int, chars: int) -> bool:
        """Whether a block outside of the page's main part is no text of it."""
        if not self._is_outside or self.keep_all:
            return False
        return self.found.only_mains or link_chars > _MOST_LINK_SHARE * chars

    def _start_over(self) -> None:
        self.inline_line = self.link_chars = 0

    def _write(
        self, kind: str, body: str, *, level: int = 0, text: str = "", language: str | None = None, line: int = 0
    ) -> None:
        self.out.add(kind, body, level=level, text=text, language=language, line=line or self.inline_line)
        self._start_over()

    def _write_heading(self, level: int) -> None:
        self._release()
        links = self.link_chars
        text = " ".join(self._take().split())
        if text and not self._is_boilerplate(links, len(text)):
            if self.items:
                self.items[-1] = ""
            self._write("heading", text, level=level, text=text)
        else:
            self._start_over()

    def _write_term(self, node: Node) -> None:
        """A term that is described at length is a heading; others wait for their description."""
        text = self._take()
        if text and id(node) in self.long_terms:
            self._release()
            line = " ".join(text.split())
            self._write("heading", line, level=min(6, _TERM_LEVEL + max(1, self.terms)), text=line)
        else:
            self._hold(text)

    def _hold(self, text: str) -> None:
        if text and not self._is_boilerplate(0, len(text)):
            self.held_line = self.held_line if self.held else self.inline_line
            self.held = f"{self.held}\n{text}" if self.held else text
        self._start_over()

    def _release(self) -> None:
        """Write what waits for a text that did not come."""
        if self.held:
            held, self.held = self.held, ""
            self._write("list_item", held, level=max(1, len(self.items)), line=self.held_line)

    def _write_preformatted(self, node: Node) -> None:
        self._flush()
        self._release()
        body = verbatim(node).strip("\n").rstrip()
        if body.strip() and not self._is_boilerplate(0, len(body)):
            line = node.origin_line or 0
            self._write("code", body, level=len(self.items), language=code_language(node), line=line)

    def _write_table(self, node: Node) -> bool:
        """Write a table of values; False for one that only lays out the page."""
        if id(node) in self.found.layout_tables:
            return False
        table = table_of(node)
        if table.columns < 2 or len(table.rows) < 2:
            return False
        if self._is_boilerplate(0, 1):
            return True
        self._flush()
        self._release()
        if table.caption:
            self._write("paragraph", table.caption, line=node.origin_line or 0)
        count = table.header_rows
        if count:
            self._write_header(table, count)
        for row in table.rows[count:]:
            if row.anchor:
                self.out.see_anchor(row.anchor, is_own=True)
            self._write("table_row" if count else "table_line", row_text(row.cells, table.columns), line=row.line)
        return True

    def _write_header(self, table: Table, count: int) -> None:
        lines = [row_text(row.cells, table.columns) for row in table.rows[:count]]
        lines.append("|" + "---|" * table.columns)
        header = "\n".join(lines)
        self._write("table_header", header, text=header, line=table.rows[0].line)


def _long_terms(node: Node) -> Iterator[int]:
    """`id()` of the terms in a description list (or a box in one) whose description is more than one paragraph."""
    is_long = False
    for child in reversed(children(node)):
        if child.name == "dd":
            blocks = [inner.name for inner in children(child) if inner.name in BLOCKS]
            is_long = len(blocks) > 1 or any(name in ("dl", "pre", "table") for name in blocks)
        elif child.name == "dt" and is_long:
            yield id(child)
