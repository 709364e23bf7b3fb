"""Which parser and which strategy a type gets.

What must stay true: naming a parser or strategy here loads none of them (grammars are heavy); versions change
whenever the chunks of any file could change.

A parser is a module `ragd.chunkers.parsers.NAME` with `parse(text: str, *, name: str) -> Document`, a strategy a
module `ragd.chunkers.strategies.NAME` with `outline(document, counter, limits) -> Outline`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from ragd.chunkers.document import Document, Outline
from ragd.chunkers.limits import Limits
from ragd.chunkers.parsers.extensions import GRAMMAR_LANGUAGES, LAYOUT_LANGUAGES
from ragd.chunkers.tokens import TokenCounter


class Parse(Protocol):
    def __call__(self, text: str, *, name: str) -> Document:
        """Parse a decoded text; `name` is the file's name without its folder. Total: raises on no text."""


class MakeOutline(Protocol):
    def __call__(self, document: Document, counter: TokenCounter, limits: Limits) -> Outline:
        """Name the boundaries of a document. Total: takes the document of any parser."""


@dataclass(frozen=True, slots=True)
class TypeEntry:
    """Parser and default strategy of one type."""

    parser: str
    strategy: str


PARSER_VERSIONS: dict[str, int] = {
    "plain": 2,
    "markdown": 3,
    "html": 2,
    "code": 1,
    "layout": 1,
    "csv_table": 2,
}

STRATEGY_VERSIONS: dict[str, int] = {
    "paragraph": 4,
    "structure": 3,
    "blocks": 2,
    "code": 1,
    "table": 1,
}

GENERIC_STRATEGIES = frozenset(["paragraph", "structure", "blocks"])
"""Strategies that make sense for every type; the others only where a type names them as its default."""

TYPES: dict[str, TypeEntry] = {
    "text": TypeEntry("plain", "paragraph"),
    "rst": TypeEntry("plain", "paragraph"),
    "asciidoc": TypeEntry("plain", "paragraph"),
    "org": TypeEntry("plain", "paragraph"),
    "markdown": TypeEntry("markdown", "structure"),
    "code": TypeEntry("plain", "blocks"),
    "html": TypeEntry("html", "structure"),
    **{language: TypeEntry("code", "code") for language in GRAMMAR_LANGUAGES},
    **{language: TypeEntry("layout", "blocks") for language in LAYOUT_LANGUAGES},
    "csv": TypeEntry("csv_table", "table"),
    "tsv": TypeEntry("csv_table", "table"),
}


def entry_of(type_name: str) -> TypeEntry:
    """The entry of a type; types without one are cut like plain text."""
    return TYPES.get(type_name, TYPES["text"])


def strategy_for(type_name: str, chunker: str) -> str:
    """The strategy in force: the configured one where it makes sense for the type, else the type's own."""
    default = entry_of(type_name).strategy
    return chunker if chunker in GENERIC_STRATEGIES or chunker == default else default


def parser(name: str) -> Parse:
    return cast(Parse, import_module(f"ragd.chunkers.parsers.{name}").parse)


def strategy(name: str) -> MakeOutline:
    return cast(MakeOutline, import_module(f"ragd.chunkers.strategies.{name}").outline)


def chunker_names() -> list[str]:
    """Names that the `chunker` setting takes."""
    return ["auto", *sorted(STRATEGY_VERSIONS)]
