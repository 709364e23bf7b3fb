"""Markdown: CommonMark with tables, front matter (YAML or TOML) and footnotes, as a flat list of blocks of whole lines.

What must stay true: headings, fences and tables are what the CommonMark parser says they are; every non-blank
line is in exactly one block or in the dropped front matter, also where the parser gives no token for it (link
definitions, empty list items, nesting beyond its limit).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from functools import lru_cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.front_matter import front_matter_plugin

from ragd.chunkers.decode import unified_newlines
from ragd.chunkers.document import Block, Document
from ragd.chunkers.parsers.front_matter import FrontMatter, read_front_matter, read_toml_front_matter
from ragd.chunkers.parsers.markdown_tables import header_text, leading_header_rows

_LINE_END = re.compile(r"\r\n|\n|\r")
_TOML_FRONT = re.compile(r"\+\+\+[ \t]*\n(.*?\n)??\+\+\+[ \t]*(?=\n|\Z)", re.DOTALL)
_ATTRIBUTES = re.compile(r"\s*\{[#.:][^{}]*\}\s*$")
_ONLY_MARKERS = re.compile(r"[\s>]*")
_TAGS = re.compile(r"<!--.*?-->|<[^>]*>", re.DOTALL)
_LONGEST_HEADING = 1000

Lines = tuple[int, int]
"""Half-open range of 0-based lines."""


def parse(text: str, *, name: str) -> Document:
    """Markdown text to blocks. `level` is a heading's level, for others the depth of the list around them."""
    del name  # the stem stands in as title elsewhere
    document = Document(text=text, type="markdown")
    unified = unified_newlines(text)
    lines = _LineTable(text)
    toml = _TOML_FRONT.match(unified)
    front = read_toml_front_matter(toml.group(1) or "") if toml else None
    front_lines = 0
    if toml and front is not None:
        front_lines = toml.group().count("\n") + 1
        document.dropped.append((0, lines.span((0, front_lines))[1], "front_matter"))
        tokens = _block_parser(front_matter=False).parse("\n" * (front_lines - 1) + unified[toml.end() :])
    else:
        tokens = _block_parser().parse(unified)
        front = _front_matter(tokens)
        if front is None and tokens and tokens[0].type == "front_matter":
            tokens = _block_parser(front_matter=False).parse(unified)
    if front is not None:
        document.metadata, document.title = front.metadata, front.title
        document.warnings += front.warnings
    document.blocks = _blocks(tokens, lines, document, front_lines)
    _set_title(document)
    return document


def _front_matter(tokens: list[Token]) -> FrontMatter | None:
    """YAML front matter; None if there is none, or if it is prose between two thematic breaks."""
    return read_front_matter(tokens[0].content) if tokens and tokens[0].type == "front_matter" else None


class _LineTable:
    """Character offsets of the lines of a text, whatever ends them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts, self._ends = array("Q", [0]), array("Q")
        for match in _LINE_END.finditer(text):
            self._ends.append(match.start())
            self._starts.append(match.end())
        self._ends.append(len(text))

    def __len__(self) -> int:
        return len(self._starts)

    def span(self, lines: Lines) -> tuple[int, int]:
        """Offsets of whole lines, without the last line end."""
        return self._starts[lines[0]], self._ends[lines[1] - 1]

    def content(self, line: int) -> str:
        return self.text[self._starts[line] : self._ends[line]]

    def trimmed(self, first: int, last: int) -> Lines | None:
        """The range without blank lines at its ends; None if nothing is left."""
        last = min(last, len(self))
        while first < last and not self.content(first).strip():
            first += 1
        while last > first and not self.content(last - 1).strip():
            last -= 1
        return (first, last) if first < last else None


@lru_cache(maxsize=1)
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark")


@lru_cache(maxsize=2)
def _block_parser(*, front_matter: bool = True) -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable("table").use(footnote_plugin)
    if front_matter:
        parser.use(front_matter_plugin)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


def _blocks(tokens: list[Token], lines: _LineTable, document: Document, first_line: int) -> list[Block]:
    """Blocks of the tokens, and of the lines from `first_line` on between them that have none."""
    blocks: list[Block] = []
    next_line = first_line
    for block, (first, last) in _leaves(tokens, lines, document):
        _fill_gap(blocks, lines, next_line, first)
        if block.kind == "front_matter":
            document.dropped.append((0, block.end, "front_matter"))
        else:
            if block.kind == "table_header" and first == next_line:
                _take_header_rows(blocks, block, document.text)
            blocks.append(block)
        next_line = last
    _fill_gap(blocks, lines, next_line, len(lines))
    return blocks


def _leaves(tokens: list[Token], lines: _LineTable, document: Document) -> Iterator[tuple[Block, Lines]]:
    """Blocks that tokens stand for, with their lines, in order and disjoint."""
    depth = quotes = notes = 0
    item_starts = False
    done = 0
    for index, token in enumerate(tokens):
        if token.type == "list_item_open":
            depth, item_starts = depth + 1, True
        elif token.type == "list_item_close":
            depth, item_starts = depth - 1, False
        elif token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type in ("footnote_reference_open", "footnote_reference_close"):
            notes += token.nesting
        if token.map is None or token.type not in _LEAF_KINDS:
            continue
        where = lines.trimmed(max(token.map[0], done), token.map[1])
        if where is None:
            continue
        if token.type == "thead_open":
            where = (where[0], min(where[1] + 1, len(lines)))  # the delimiter row belongs to no token
        done = where[1]
        block = Block(_LEAF_KINDS[token.type], *lines.span(where), level=depth)
        if token.type == "heading_open" and depth == quotes == notes == 0:
            block.level, block.text = int(token.tag[1]), heading_text(tokens[index + 1].content)
        elif token.type == "thead_open":
            block.text = header_text(document.text[block.start : block.end])
        elif token.type == "fence":
            block.language = token.info.split()[0].strip("{}.").lower() if token.info.split() else None
        elif block.kind in ("heading", "paragraph"):
            block.kind = "list_item" if item_starts else "quote" if quotes else "paragraph"
        item_starts = False
        yield block, where


_LEAF_KINDS = {
    "front_matter": "front_matter",
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "fence": "fence",
    "code_block": "code",
    "html_block": "html",
    "hr": "rule",
    "thead_open": "table_header",
    "tr_open": "table_row",
}


def _fill_gap(blocks: list[Block], lines: _LineTable, first: int, last: int) -> None:
    """Add blocks for lines without a token. Bare quote markers join the block before them."""
    start: int | None = None
    for line in range(first, last + 1):
        content = lines.content(line) if line < last else ""
        if content.strip() and start is None:
            start = line
        elif not content.strip() and start is not None:
            begin, end = lines.span((start, line))
            if blocks and _ONLY_MARKERS.fullmatch(lines.text, begin, end):
                blocks[-1].end = end
            else:
                blocks.append(Block("paragraph", begin, end))
            start = None


def _take_header_rows(blocks: list[Block], header: Block, text: str) -> None:
    """Move table rows at the end of the paragraph right above into the table's header."""
    if not blocks or blocks[-1].kind not in ("paragraph", "quote"):
        return
    above = blocks[-1]
    rows = _LINE_END.split(text[above.start : above.end])
    taken = leading_header_rows(rows, _LINE_END.split(text[header.start : header.end])[0])
    if not taken:
        return
    ends = list(_LINE_END.finditer(text, above.start, above.end))
    if taken == len(rows):
        header.start = above.start
        blocks.pop()
    else:
        line_end = ends[len(rows) - taken - 1]
        above.end, header.start = line_end.start(), line_end.end()
    header.text = header_text(text[header.start : header.end])


def heading_text(content: str) -> str:
    """A heading's text without its markup, blanks made single."""
    if len(content) > _LONGEST_HEADING:
        return " ".join(content.split())
    parts: list[str] = []
    for token in _inline_parser().parseInline(content)[0].children or []:
        if token.type in ("text", "code_inline", "image", "text_special"):
            parts.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            parts.append(" ")
    return " ".join(_ATTRIBUTES.sub("", "".join(parts)).split())


def _set_title(document: Document) -> None:
    """The front matter's title, else a single H1 before other text."""
    top = [block for block in document.blocks if block.kind == "heading" and block.level == 1]
    if document.title is not None or len(top) != 1 or not top[0].text:
        return
    document.sole_heading = top[0].text
    for block in document.blocks:
        if block is top[0]:
            document.title = block.text
            return
        if block.kind != "html" or _TAGS.sub("", document.text[block.start : block.end]).strip():
            return
