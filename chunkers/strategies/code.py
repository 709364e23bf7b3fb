"""Source code: definitions whole where they fit, small ones packed together, large ones cut between statements.

A definition over half of the target stands alone (with a tiny neighbour that would be a fragment); a class that does
not fit is its skeleton (head, docstring, fields) and its methods; a function that does not fit is cut between its
statements, the shallowest first, and each part carries the signature in its prefix.

Must stay true: the atoms of a block cover it whole, in order; nothing recurses, and each stretch is counted once.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from itertools import accumulate

from ragd.chunkers.document import Atom, Block, Document, Outline, Region, Unit
from ragd.chunkers.limits import Limits
from ragd.chunkers.splitting import Weigher
from ragd.chunkers.tokens import TokenCounter

ALONE_SHARE = 0.5
"""A definition over this share of the target is packed with nothing."""
FRAGMENT_SHARE, FRAGMENT_TOKENS = 0.2, 20
"""Whatever is smaller than this joins a neighbour if it can."""
NAMED_VARIABLE_TOKENS = 25
"""A variable smaller than this is not worth a symbol: a chunk may hold fifty of them."""

_DEPTH_COST = 0.12
_NO_BLANK_LINE_COST = 0.15
_AFTER_HEAD_COST = 0.9
_COSTS = {"function": 0.0, "class": 0.0, "group": 0.05, "comment": 0.1, "import": 0.3, "error": 0.1, "head": 0.6}
_COST = 0.15
_MODULE_HEADER = ("header", "docstring", "import")
_DEFINITIONS = ("function", "class", "variable")
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(slots=True)
class _Scope:
    """What holds for the blocks of one definition (or of the file) that is not one atom."""

    kind: str
    section: tuple[str, ...] = ()
    unit: int = -1
    chain: tuple[int, ...] = ()
    """Units from the file down to this one."""
    context: str = ""
    context_from: int = -1
    symbol: str | None = None


@dataclass(slots=True)
class _Item:
    """Atoms that stay in one region: a definition, a run of statements of a large one, or one small thing."""

    atoms: list[Atom]
    tokens: int
    alone: bool
    chain: tuple[int, ...]
    is_header: bool = False
    is_comment: bool = False
    """Whether it is nothing but the comment that a file begins with."""


def outline(document: Document, counter: TokenCounter, limits: Limits) -> Outline:
    """The regions of a source file; every other kind of document is taken as a flat list of statements."""
    sizes = _Sizes(document, counter, limits)
    units = [Unit("file", "", (), document.blocks[0].start, document.blocks[-1].end)] if document.blocks else []
    items = _Itemizer(document, limits, sizes, units).items()
    return Outline(_regions(items, document.text, limits), units)


class _Sizes:
    """Tokens of any block: the text between two neighbouring starts is counted once, the rest is addition."""

    def __init__(self, document: Document, counter: TokenCounter, limits: Limits) -> None:
        edges: set[int] = set()
        stack = list(document.blocks)
        while stack:
            block = stack.pop()
            edges.update((block.start, block.end))
            stack.extend(block.children)
        self._edges = sorted(edges)
        text = document.text
        weigher = Weigher(text, counter, limits.ceiling_tokens)
        slices = [text[a:b] for a, b in zip(self._edges, self._edges[1:], strict=False)]
        weights = [
            weight if piece.strip() else 0 for piece, weight in zip(slices, weigher.weigh_texts(slices), strict=True)
        ]
        self._before = [0, *accumulate(weights)]

    def of(self, start: int, end: int) -> int:
        """Tokens between two starts or ends of blocks."""
        return self._before[bisect_left(self._edges, end)] - self._before[bisect_left(self._edges, start)]


@dataclass(slots=True)
class _Itemizer:
    """Walks the blocks in order and decides which are atoms and which are taken apart."""

    document: Document
    limits: Limits
    sizes: _Sizes
    units: list[Unit]
    made: list[_Item] = field(default_factory=list)
    open_unit: int = -1
    """The unit whose statements the last item holds, while it is still open."""
    leading: bool = True
    """Whether nothing but header, docstring and imports has been seen."""

    def items(self) -> list[_Item]:
        top = _Scope("file", unit=0 if self.units else -1, chain=(0,))
        stack = [(block, top, False) for block in reversed(self.document.blocks)]
        while stack:
            block, scope, after_head = stack.pop()
            self.leading = self.leading and block.kind in _MODULE_HEADER
            tokens = self.sizes.of(block.start, block.end)
            if not self._is_taken_apart(block, tokens):
                self._add_whole(block, scope, tokens, after_head)
                continue
            inner = self._scope_of(block, scope)
            has_head = block.children[0].start > block.start
            if has_head:
                self._add_head(block, scope, inner, after_head)
            heads = [has_head and block.kind != "group", *(child.kind == "head" for child in block.children)]
            stack.extend(reversed([(child, inner, after) for child, after in zip(block.children, heads, strict=False)]))
        return self.made

    def _is_taken_apart(self, block: Block, tokens: int) -> bool:
        if not block.children:
            return False
        if block.kind in ("group", "import"):
            return tokens > ALONE_SHARE * self.limits.target_tokens
        return tokens > self.limits.ceiling_tokens

    def _scope_of(self, block: Block, scope: _Scope) -> _Scope:
        if block.kind in ("group", "import"):
            return scope
        if block.kind not in _DEFINITIONS:
            kind = "function" if scope.kind == "function" else "statements"
            return replace(scope, kind=kind)
        section = self._section(block, scope)
        self.units.append(Unit(block.kind, block.symbol or "", section, block.start, block.end))
        unit = len(self.units) - 1
        kind = "class" if block.kind == "class" else "function"
        head = next((child.start for child in block.children[:2] if child.kind == "head"), block.start)
        return _Scope(kind, section, unit, (*scope.chain, unit), block.text, head, block.symbol)

    def _section(self, block: Block, scope: _Scope) -> tuple[str, ...]:
        names = (block.scope, block.symbol)
        return scope.section + tuple(name for name in names if name)

    def _add_head(self, block: Block, scope: _Scope, inner: _Scope, after_head: bool) -> None:
        """The lines of a block in front of its first child, blank characters at their end left out."""
        text, end = self.document.text, block.children[0].start
        tokens = self.sizes.of(block.start, end)
        while end > block.start and text[end - 1].isspace():
            end -= 1
        atom = Atom(
            block.start,
            end,
            self._cost(block, after_head),
            "module-header" if block.kind == "group" and scope.kind == "file" else self._kind(block, inner),
            inner.section,
            split="lines",
            context=inner.context,
            context_from=inner.context_from,
            unit=inner.unit,
            language=self.document.language,
            symbol=inner.symbol,
        )
        self._place(_Item([atom], tokens, alone=False, chain=inner.chain), inner)

    def _add_whole(self, block: Block, scope: _Scope, tokens: int, after_head: bool) -> None:
        is_definition = block.kind in ("function", "class")
        is_named = is_definition or (block.kind == "variable" and tokens >= NAMED_VARIABLE_TOKENS)
        in_parts = scope.kind in ("function", "statements")
        atom = Atom(
            block.start,
            block.end,
            self._cost(block, after_head),
            self._kind(block, scope),
            self._section(block, scope) if is_definition else scope.section,
            split="lines",
            unit=scope.unit,
            language=self.document.language,
            symbol=block.symbol
            if is_named and block.symbol
            else scope.symbol
            if in_parts or block.kind == "head"
            else None,
        )
        if not is_definition or in_parts:
            atom.context, atom.context_from = scope.context, scope.context_from
        item = _Item(
            [atom],
            tokens,
            alone=is_named and tokens > ALONE_SHARE * self.limits.target_tokens,
            chain=scope.chain,
            is_header=atom.kind == "module-header",
            is_comment=block.kind == "header",
        )
        self._place(item, scope)

    def _place(self, item: _Item, scope: _Scope) -> None:
        """Add an item, or go on with the one that holds the statements of the same definition."""
        if scope.kind not in ("function", "statements") or item.alone:
            self.open_unit = -1
            self.made.append(item)
        elif self.open_unit == scope.unit:
            self.made[-1].atoms += item.atoms
            self.made[-1].tokens += item.tokens
        else:
            self.open_unit = scope.unit
            item.alone = True
            self.made.append(item)

    def _kind(self, block: Block, scope: _Scope) -> str:
        if scope.kind in ("function", "statements"):
            return "code-part"
        is_header = block.kind in ("header", "import") or (block.kind == "docstring" and self.leading)
        if is_header and scope.kind == "file":
            return "module-header"
        return "code-def" if block.kind in _DEFINITIONS or scope.kind == "class" else "code-part"

    def _cost(self, block: Block, after_head: bool) -> float:
        """Price of a cut in front of a block: by what it is, how deep it stands and whether a line is left blank."""
        if after_head:
            return _AFTER_HEAD_COST
        cost = _COSTS.get(block.kind, _COST) + _DEPTH_COST * min(block.level, 8)
        before = self.document.text[max(0, block.start - 200) : block.start].rstrip(" \t")
        lines = before.replace("\r\n", "\n").replace("\r", "\n")
        return cost if lines.endswith("\n\n") or not lines else cost + _NO_BLANK_LINE_COST


def _regions(items: list[_Item], text: str, limits: Limits) -> list[Region]:
    """Items that stand alone get a region each, runs of small ones share one; fragments join a neighbour."""
    least = max(FRAGMENT_TOKENS, FRAGMENT_SHARE * limits.target_tokens)
    least = min(least, ALONE_SHARE * limits.target_tokens)
    joined: list[_Item] = []
    held: _Item | None = None
    for run in [*_runs(items), None]:
        if held is not None:
            if run is not None and _may_lead(held, run, text, limits):
                run = _together(held, run)
            elif joined and not joined[-1].is_comment and _fits(joined[-1], held, limits):
                joined[-1] = _together(joined[-1], held)
            else:
                joined.append(held)
            held = None
        if run is not None and run.tokens < least:
            held = run
        elif run is not None:
            joined.append(run)
    return [Region(item.atoms) for item in joined]


def _runs(items: list[_Item]) -> list[_Item]:
    """Neighbouring small items of one scope as one item each."""
    runs: list[_Item] = []
    for item in items:
        before = runs[-1] if runs else None
        if (
            before is None
            or item.alone
            or before.alone
            or (before.chain, before.is_header) != (item.chain, item.is_header)
        ):
            runs.append(item)
        else:
            before.atoms += item.atoms
            before.tokens += item.tokens
            before.is_comment = before.is_comment and item.is_comment
    return runs


def _may_lead(small: _Item, after: _Item, text: str, limits: Limits) -> bool:
    """Whether a fragment may stand in front of `after`: not where it would leave its class, nor a comment on the
    first lines of a file that runs into a definition, because such comments speak about the file."""
    if small.chain != after.chain[: len(small.chain)] or not _fits(small, after, limits):
        return False
    gap = text[small.atoms[-1].end : after.atoms[0].start]
    return not small.is_comment or after.atoms[0].symbol is None or len(_LINE_END.findall(gap)) > 1


def _fits(one: _Item, other: _Item, limits: Limits) -> bool:
    """Whether two items fill one chunk at most, or at least one of them is cut anyway."""
    ceiling = limits.ceiling_tokens
    return one.tokens + other.tokens <= ceiling or max(one.tokens, other.tokens) > ceiling


def _together(first: _Item, second: _Item) -> _Item:
    """Two items as one; what has no name itself (a comment, a constant) takes the section of the one beside it."""
    larger, smaller = (first, second) if first.tokens >= second.tokens else (second, first)
    section = larger.atoms[0].section
    for atom in smaller.atoms:
        if atom.symbol is None and atom.section == section[: len(atom.section)]:
            atom.section, atom.context = section, ""
    return _Item(
        first.atoms + second.atoms,
        first.tokens + second.tokens,
        larger.alone,
        larger.chain,
        larger.is_header,
        first.is_comment and second.is_comment,
    )
