"""The type of a file, by its name and, where the name says nothing, by how it begins.

What must stay true: pure in name and content, and every text has a type ("text" at last), so nothing readable is
left out for want of a name.
"""

from __future__ import annotations

import re

from ragd.chunkers.parsers.extensions import (
    GRAMMAR_LANGUAGES,
    INTERPRETERS,
    LAYOUT_LANGUAGES,
    language_by_name,
)

VERSION = 1

_BY_EXTENSION = {
    # prose
    "txt": "text",
    "text": "text",
    "rst": "rst",
    "rest": "rst",
    "adoc": "asciidoc",
    "asciidoc": "asciidoc",
    "org": "org",
    # Markdown
    "md": "markdown",
    "markdown": "markdown",
    "mdown": "markdown",
    "mkd": "markdown",
    "mkdn": "markdown",
    "mdx": "markdown",
    "qmd": "markdown",
    "rmd": "markdown",
    # HTML
    "html": "html",
    "htm": "html",
    "xhtml": "html",
    "xht": "html",
    # tables
    "csv": "csv",
    "tsv": "tsv",
    "tab": "tsv",
}
"""Extension in lower case -> type."""

_MAGIC = (
    (b"%PDF-", "pdf"),
    (b"PK\x03\x04", "zip"),
    (b"\x1f\x8b", "gzip"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"\xff\xd8\xff", "jpeg"),
    (b"GIF8", "gif"),
    (b"\x7fELF", "elf"),
    (b"SQLite format 3\x00", "sqlite"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "ole"),
    (b"7z\xbc\xaf\x27\x1c", "7z"),
    (b"wOFF", "woff"),
    (b"wOF2", "woff2"),
    (b"OggS", "ogg"),
    (b"fLaC", "flac"),
    (b"ID3", "mp3"),
)

_TYPED_MAGIC = frozenset([b"GIF8", b"wOFF", b"wOF2", b"OggS", b"fLaC", b"ID3"])
_NO_TEXT_BYTE = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MAGIC_HEAD_BYTES = 32

_SHEBANG = re.compile(r"#!\s*\S*?/?(?:env\s+(?:-S\s+)?)?([A-Za-z]+)[\d.]*(?:\s|\Z)")
_HTML_START = re.compile(r"\s*(?:<!--.*?-->\s*)*<(?:!doctype\s+html|html)\b", re.IGNORECASE | re.DOTALL)
_HEAD_CHARS = 4096

CODE = "code"
_DATA_LANGUAGES = frozenset(["ini", "json", "properties", "sql", "toml", "xml", "yaml"])
"""Long lines are usual there, and no sign of a program's output that nobody reads."""
_CODE_TYPES = frozenset([CODE, *GRAMMAR_LANGUAGES, *LAYOUT_LANGUAGES]) - _DATA_LANGUAGES
_MINIFIED_MEAN_LINE_CHARS = 500
_MINIFIED_LEAST_CHARS = 2000


def type_by_name(name: str) -> str | None:
    """Type of a file by its name alone; None where the content must decide."""
    _, dot, extension = name.lower().rpartition(".")
    language = language_by_name(name)
    return language or (_BY_EXTENSION.get(extension) if dot else None)


def type_of(name: str, text: str) -> str:
    """Type of a decoded file."""
    named = type_by_name(name)
    if named is not None:
        return named
    head = text[:_HEAD_CHARS]
    if _HTML_START.match(head):
        return "html"
    shebang = _SHEBANG.match(head)
    if shebang:
        return INTERPRETERS.get(shebang.group(1).lower(), CODE)
    return "text"


def binary_format(data: bytes) -> str | None:
    """Name of a format that is no text, by its first bytes. A mark that a person could type, such as GIF89a, counts
    only where control characters follow: a note about the format begins with it too."""
    found = next(((magic, name) for magic, name in _MAGIC if data.startswith(magic)), None)
    if found is None or (found[0] in _TYPED_MAGIC and not _NO_TEXT_BYTE.search(data[:_MAGIC_HEAD_BYTES])):
        return None
    return found[1]


def generated_reason(type_name: str, text: str) -> str | None:
    """Why a text is not worth an index: code whose lines no person wrote. None for all others."""
    if type_name not in _CODE_TYPES or len(text) < _MINIFIED_LEAST_CHARS:
        return None
    lines = text.count("\n") + text.count("\r") - text.count("\r\n") + (text[-1:] not in "\r\n")
    mean = len(text) / lines
    if mean > _MINIFIED_MEAN_LINE_CHARS:
        return f"minified: its lines are {mean:.0f} characters long on average"
    return None
