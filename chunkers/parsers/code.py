"""Source code to blocks, by its syntax tree where there is one and by its layout where there is not.

A block begins at the start of a line and lasts until the next one begins, so what lies between two statements (a
closing brace, a trailing comment) is never lost. Blocks nest: a definition's children are what stands in its body.

Must stay true: every inked line is in exactly one block of each level, and nothing is looked at twice: the time is
linear and no nesting is too deep. tree-sitter counts UTF-8 bytes; only its line numbers are used, and columns within
one line, so that no byte offset ever meets a decoded string.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from tree_sitter import Node

from ragd.chunkers.document import Block, Document
from ragd.chunkers.parsers.languages import CLOSERS, GRAMMARS, NAMESPACES, SEQUENCES, Grammar, grammar_name
from ragd.chunkers.parsers.lines import Lines, block_starts, lines_of
from ragd.chunkers.parsers.syntax import Syntax, body_of, parse_tree

MIN_SPLIT_CHARS = 160
"""A block shorter than this is never given children."""
LONG_LINE_CHARS = 400
"""Only a line longer than this may be cut between two statements that stand on it."""
MAX_SCOPES = 8
"""A definition nested in more than this many others is a statement like any other."""
MAX_LEVEL = 8

_CLAUSE_LEVELS = 3
"""What makes a cut inside an expression or before a clause dearer than one between statements."""
_AFTER_COMMENT_LEVELS = 4
_DEFINITIONS = ("function", "class", "variable")
_WHOLE = ("statement", "declaration", "definition", "_item")
"""How the types of nodes end that are whole even where what is around them is broken."""
_EMPTY_COMMENT = re.compile(r"[ \t]*(?:\*|#+|//+!?|--|;+)?[ \t]*")
_NEWLINE = re.compile(r"\r\n?")


@dataclass(slots=True)
class _Piece:
    """A node that begins on a line of its own, before it is glued to its neighbours."""

    kind: str
    start: int
    row: int
    end_row: int
    level: int = 0
    column: int = 0
    node: Node | None = None
    core: Node | None = None
    children: list[Block] = field(default_factory=list)
    rest: list[_Piece] = field(default_factory=list)
    """What broken syntax tore off its body."""


@dataclass(slots=True)
class _Task:
    """A block whose children are still to be found."""

    block: Block | None
    node: Node
    start_byte: int
    end: int
    scopes: int
    level: int
    in_function: bool
    rest: list[_Piece] = field(default_factory=list)


def parse(text: str, *, name: str) -> Document:
    """The definitions, imports, comments and statements of one source file, whose name tells the language."""
    grammar = GRAMMARS[grammar_name(name, text)]
    lines = lines_of(text)
    document = Document(text=text, type=grammar.language, language=grammar.language)
    source = _NEWLINE.sub("\n", text).encode("utf-8", "replace")
    tree = parse_tree(source, grammar)
    if tree is None or tree.root_node.has_error:
        document.metadata["syntax_errors"] = True
    builder = _Builder(text, lines, Syntax(source, grammar), grammar, "syntax_errors" in document.metadata)
    document.blocks = builder.build(tree.root_node) if tree is not None else builder.by_layout()
    return document


@dataclass(slots=True)
class _Builder:
    text: str
    lines: Lines
    syntax: Syntax
    grammar: Grammar
    has_error: bool

    def build(self, root: Node) -> list[Block]:
        """The blocks of the file. A stack instead of recursion: code nests as deep as its author likes."""
        top: list[Block] = []
        tasks = [_Task(None, root, -1, len(self.text), 0, 0, in_function=False)]
        while tasks:
            task = tasks.pop()
            blocks = self._blocks(task, tasks)
            if task.block is None:
                top = blocks
            else:
                task.block.children += blocks
                _close(task.block.children, task.end, self.text)
        return top

    def by_layout(self) -> list[Block]:
        """The blocks of a file whose syntax could not be had."""
        blocks = [_block_of(piece) for piece in _layout_pieces(self.lines, 0, len(self.lines.starts) - 1)]
        _close(blocks, len(self.text), self.text)
        return blocks

    def _blocks(self, task: _Task, tasks: list[_Task]) -> list[Block]:
        pieces = self._glued(self._pieces(task), task) + task.rest
        if self.has_error:
            pieces = _with_their_rest(pieces)
        if task.block is None:
            pieces = self._from_first_line(pieces)
        blocks = [_block_of(piece) for piece in pieces]
        _close(blocks, task.end, self.text)
        for block, piece in zip(blocks, pieces, strict=True):
            self._describe(block, piece, task, tasks)
        return blocks

    def _from_first_line(self, pieces: list[_Piece]) -> list[_Piece]:
        """Begin with the first inked line of the file, whatever the tree made of it."""
        first = next((row for row, indent in enumerate(self.lines.indents) if indent >= 0), None)
        if first is None or (pieces and pieces[0].start <= self.lines.starts[first]):
            return pieces
        return [_Piece("statement", self.lines.starts[first], first, first), *pieces]

    def _describe(self, block: Block, piece: _Piece, task: _Task, tasks: list[_Task]) -> None:
        """Name a definition and ask for the children of what may have to be split."""
        core, node = piece.core, piece.node
        block.language = self.grammar.language
        if core is None or node is None:
            return
        if piece.kind in _DEFINITIONS:
            block.symbol = self.syntax.name_of(core)
            block.text = "" if core.type in NAMESPACES else self.syntax.signature_of(core)
            block.scope = self.syntax.receiver_of(core)
        if block.end - block.start < MIN_SPLIT_CHARS or piece.kind in (
            "import",
            "docstring",
            "comment",
            "header",
        ):
            return
        scanned = (body_of(core) or core) if piece.kind in _DEFINITIONS else node
        is_scope = piece.kind in ("function", "class")
        own_start = self.lines.starts[node.start_point.row]
        if is_scope and own_start - block.start > MIN_SPLIT_CHARS:  # a comment as long as this may stand alone
            comment = Block("comment", block.start, own_start)
            comment.children = self._paragraphs("comment", block.start, own_start)
            block.children = [comment, Block("head", own_start, 0)]
        tasks.append(
            _Task(
                block=block,
                node=scanned,
                start_byte=core.start_byte,
                end=block.end,
                scopes=task.scopes + is_scope,
                level=0 if is_scope or piece.kind == "group" else min(task.level + 1, MAX_LEVEL),
                in_function=task.in_function or piece.kind == "function",
                rest=piece.rest,
            )
        )

    def _paragraphs(self, kind: str, start: int, end: int) -> list[Block]:
        """The paragraphs of a comment: a new one begins after a line that holds nothing but a comment's mark."""
        first = bisect_right(self.lines.starts, start) - 1
        starts = [start]
        row = first + 1
        while row < len(self.lines.starts) and self.lines.starts[row] < end:
            before = self.text[self.lines.starts[row - 1] : self.lines.ends[row - 1]]
            if row > first + 1 and self.lines.indents[row] >= 0 and _EMPTY_COMMENT.fullmatch(before):
                starts.append(self.lines.starts[row])
            row += 1
        if len(starts) == 1:
            return []
        blocks = [Block(kind, paragraph, 0) for paragraph in starts]
        _close(blocks, end, self.text)
        return blocks

    def _pieces(self, task: _Task) -> list[_Piece]:
        """The outermost nodes in `task.node` that begin a line, in order; broken syntax by its layout."""
        found: list[_Piece] = []
        broken: list[tuple[int, int]] = []
        stack = [(task.node, True, False)]
        while stack:
            node, in_sequence, in_error = stack.pop()
            row, end_row = _rows(node)
            if node is not task.node and self._begins(node, row, task, in_sequence):
                piece = self._piece(node, row, end_row, task, in_sequence)
                if not in_error or piece.kind != "statement" or node.type.endswith(_WHOLE):
                    found.append(piece)
                    continue
            if node.is_error and end_row > row and not in_error:
                broken.append((row, end_row))
                in_error = True
            if end_row > row or self._is_long(row):
                in_sequence = node is task.node or node.type in SEQUENCES or node.type.startswith(("jsx_", "preproc_"))
                stack.extend((child, in_sequence, in_error) for child in reversed(node.children))
        if broken:
            found = self._with_layout(found, broken, task)
        return found

    def _begins(self, node: Node, row: int, task: _Task, in_sequence: bool) -> bool:
        if not node.is_named or node.start_byte <= task.start_byte or node.start_byte >= node.end_byte:
            return False
        if node.type in SEQUENCES or node.type in CLOSERS or node.is_error:
            return False
        column = node.start_point.column
        if column == self.lines.indents[row]:
            return True
        return in_sequence and column > 0 and self._is_long(row)

    def _is_long(self, row: int) -> bool:
        return self.lines.ends[row] - self.lines.starts[row] > LONG_LINE_CHARS

    def _piece(self, node: Node, row: int, end_row: int, task: _Task, in_sequence: bool) -> _Piece:
        core = self.syntax.unwrapped(node)
        kind = self.syntax.kind_of(core)
        if task.in_function and kind in ("import", "variable", "docstring", "group"):
            kind = "statement"
        if kind in _DEFINITIONS and task.scopes >= MAX_SCOPES:
            kind = "statement"
        column = node.start_point.column
        start = self.lines.starts[row]
        if column != self.lines.indents[row]:
            start += self._characters(row, column)
        level = task.level + (0 if in_sequence else _CLAUSE_LEVELS)
        return _Piece(kind, start, row, end_row, min(level, MAX_LEVEL), column, node, core)

    def _characters(self, row: int, column: int) -> int:
        """Characters in the first `column` bytes of a line."""
        line = self.text[self.lines.starts[row] : self.lines.starts[row] + column]
        if line.isascii():
            return column
        return len(line.encode("utf-8", "replace")[:column].decode("utf-8", "ignore"))

    def _with_layout(self, found: list[_Piece], broken: list[tuple[int, int]], task: _Task) -> list[_Piece]:
        """Add pieces for those lines of broken syntax that no definition covers."""
        covered = {row for piece in found for row in range(piece.row, piece.end_row + 1)}
        first_row = task.node.start_point.row if task.block is not None else -1
        rows = sorted({r for a, b in broken for r in range(a, b + 1)} - covered)
        extra: list[_Piece] = []
        begin = 0
        for i in range(1, len(rows) + 1):
            if i == len(rows) or rows[i] != rows[i - 1] + 1:
                extra += _layout_pieces(self.lines, rows[begin], rows[i - 1])
                begin = i
        extra = [piece for piece in extra if piece.row > first_row]
        return sorted([*found, *extra], key=lambda piece: piece.start)

    def _glued(self, pieces: list[_Piece], task: _Task) -> list[_Piece]:
        """Put comments and attributes in front of what they speak of, and imports together."""
        is_top = task.block is None
        result: list[_Piece] = []
        held: _Piece | None = None
        for piece in pieces:
            if held is not None and piece.start <= held.start:
                continue
            if held is None and result and piece.start <= result[-1].start:
                continue
            if held is not None:
                if self._joins(held, piece):
                    piece = self._joined(held, piece)
                else:
                    result.append(held)
                held = None
            if self._trails(piece, result):
                continue
            if piece.kind in ("comment", "attribute"):
                if is_top and not result and piece.kind == "comment" and not self._documents(piece):
                    piece.kind = "header"
                held = piece
            elif piece.kind == "header":
                held = piece
            elif piece.kind == "import" and result and result[-1].kind == "import":
                self._merge_import(result[-1], piece)
            else:
                if result and result[-1].kind == "comment":
                    piece.level = min(piece.level + _AFTER_COMMENT_LEVELS, MAX_LEVEL)
                if piece.kind == "import":
                    self._merge_import(piece, piece)
                result.append(piece)
        if held is not None:
            result.append(held)
        return result

    def _joins(self, held: _Piece, piece: _Piece) -> bool:
        if held.kind == "attribute":
            return True
        if piece.row > held.end_row + 1:
            return False
        if held.kind == "header":
            return piece.kind in ("comment", "import", "docstring")
        return True

    def _joined(self, held: _Piece, piece: _Piece) -> _Piece:
        piece.start, piece.row, piece.column = held.start, held.row, held.column
        if piece.kind == "comment":
            piece.kind = held.kind
        return piece

    def _trails(self, piece: _Piece, result: list[_Piece]) -> bool:
        """Whether a piece belongs to what stands above it: a comment that is indented further, or the string that
        documents a Python variable."""
        if not result or self.grammar.language != "python":
            return False
        if piece.kind == "docstring":
            return result[-1].kind == "variable"
        return piece.kind == "comment" and piece.column > result[-1].column

    def _documents(self, piece: _Piece) -> bool:
        return self.text.startswith(self.grammar.doc_comments, self.lines.starts[piece.row] + piece.column)

    def _merge_import(self, group: _Piece, piece: _Piece) -> None:
        group.children.append(Block(kind="import", start=piece.start, end=0, level=piece.level))
        group.end_row = piece.end_row


def _rows(node: Node) -> tuple[int, int]:
    """First and last line of a node; some grammars let a node end at the start of the line after it."""
    row, (end_row, end_column) = node.start_point.row, node.end_point
    return row, end_row - 1 if end_column == 0 and end_row > row else end_row


def _with_their_rest(pieces: list[_Piece]) -> list[_Piece]:
    """Give a definition back what is indented deeper than itself: an error inside of it may have ended it early."""
    kept: list[_Piece] = []
    for piece in pieces:
        owner = kept[-1] if kept else None
        if owner is not None and owner.kind in ("function", "class") and piece.column > owner.column:
            owner.rest.append(piece)
        else:
            kept.append(piece)
    return kept


def _layout_pieces(lines: Lines, first: int, last: int) -> list[_Piece]:
    starts = block_starts(lines, first, last)
    return [
        _Piece("error", lines.starts[row], row, row, min(_CLAUSE_LEVELS * depth, MAX_LEVEL), lines.indents[row])
        for row, depth in starts
    ]


def _block_of(piece: _Piece) -> Block:
    return Block(kind=piece.kind, start=piece.start, end=0, level=piece.level, children=piece.children)


def _close(blocks: list[Block], end: int, text: str) -> None:
    """Let each block last until the next one begins, blank characters at its end left out."""
    for block, after in zip(blocks, [*blocks[1:], None], strict=False):
        stop = end if after is None else after.start
        while stop > block.start and text[stop - 1].isspace():
            stop -= 1
        block.end = stop
        if block.children:
            _close(block.children, block.end, text)
