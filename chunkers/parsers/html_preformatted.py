"""Preformatted text of web pages: as it stands, and in which language.

Must stay true: nothing of the text is changed but what is hidden in it.
"""

from __future__ import annotations

import re

from justhtml import Node

from ragd.chunkers.parsers.html_page import children, classes, is_dropped

_LANGUAGE_CLASS = re.compile(r"(?:language|lang|highlight|brush:?|source)-?([a-z][a-z0-9+#-]*)$")
_NOT_LANGUAGES = frozenset(["default", "text", "none", "plaintext", "block", "wrapper", "container"])


def verbatim(node: Node) -> str:
    """Preformatted text as it stands."""
    pieces: list[str] = []
    stack = [node]
    while stack:
        here = stack.pop()
        if here.name == "#text":
            pieces.append(str(here.data or ""))
        elif here.name == "br":
            pieces.append("\n")
        elif here is node or not is_dropped(here, outside_main=False):
            stack.extend(reversed(children(here)))
    return "".join(pieces)


def code_language(node: Node) -> str | None:
    """What the classes of preformatted text, of the code in it or of the boxes around it call its language."""
    inner = [child for child in children(node) if child.name == "code"]
    around = [node.parent, node.parent.parent if node.parent is not None else None]
    for box in [*inner, node, *around]:
        if box is None:
            continue
        for mark in classes(box):
            match = _LANGUAGE_CLASS.match(mark)
            if match and match.group(1) not in _NOT_LANGUAGES:
                return match.group(1)
    return None
