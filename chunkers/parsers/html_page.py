"""What of a web page is text worth keeping: its main part, what is hidden, what is navigation around it.

Must stay true: no walk recurses, and each looks at a node once; where the rules would leave nothing, they are off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from justhtml import Node

PREFORMATTED = frozenset(["pre", "listing", "xmp", "plaintext"])
HEADINGS = {f"h{level}": level for level in range(1, 7)}
BLOCKS = frozenset(
    [
        *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "dir"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "html"),
        *("legend", "li", "main", "menu", "nav", "ol", "p", "search", "section", "summary", "table", "tbody", "td"),
        *("tfoot", "th", "thead", "tr", "ul", "optgroup", "option"),
        *PREFORMATTED,
        *HEADINGS,
    ]
)
"""Elements that begin and end a block of text."""

_NEVER_TEXT = frozenset(
    [
        *("script", "style", "template", "noscript", "head", "iframe", "object", "embed", "canvas", "audio", "video"),
        *("svg", "map", "select", "datalist", "textarea", "input", "button", "noframes", "noembed", "rp", "annotation"),
        *("annotation-xml", "progress", "meter", "basefont"),
    ]
)
_CODE_ONLY = frozenset(["script", "style", "template", "head"])
_AROUND = frozenset(["header", "footer", "aside", "form", "dialog", "search", "menu"])
"""Boilerplate where the page marks its main part and they stand outside of it."""
_AROUND_ROLES = frozenset(["banner", "contentinfo", "complementary", "search", "menu", "menubar", "dialog", "toolbar"])
_NOTICE = re.compile(r"(?:^|[\s_-])(?:cookie|consent|gdpr)s?(?:$|[\s_-])", re.IGNORECASE)
_HIDING_STYLE = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_SIGNS = frozenset(["a", "b", "em", "i", "small", "span", "sup"])
"""What `aria-hidden` marks as decoration; on larger elements it only means that something lies above them."""
_HIDING_CLASSES = frozenset(["headerlink", "sr-only", "visually-hidden", "skip-link", "skip-to-content"])
_LINE_NUMBERS = frozenset(["linenos", "lineno", "linenodiv", "line-numbers-rows", "gutter"])
_MIN_MAIN_SHARE = 0.2
"""A main part with less of the page's words than this is not trusted to be it."""
_WHOLE_MAIN_SHARE, _WHOLE_MAIN_WORDS = 0.6, 100
"""A main part with this much of the words that are no navigation is all there is to the page."""


@dataclass(slots=True)
class Survey:
    """What one look at the whole page tells."""

    title: str = ""
    social_title: str = ""
    description: str = ""
    language: str = ""
    mains: set[int] = field(default_factory=set)
    """`id()` of the outermost elements that hold the page's own text; empty if it marks none."""
    only_mains: bool = False
    """Whether what stands outside of them is left out altogether."""
    around_mains: set[int] = field(default_factory=set)
    """`id()` of these and of whatever holds them: none of it is dropped, whatever it calls itself."""
    layout_tables: set[int] = field(default_factory=set)
    """`id()` of the tables that hold tables, headings or preformatted text: they are no tables of values."""
    seen: list[Node] = field(default_factory=list)
    """Keeps the nodes of these ids alive."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A node still to be looked at, and what is around it."""

    node: Node
    table: Node | None = None
    main: Node | None = None
    is_around: bool = False
    """Whether it is in navigation, a header, a footer or an aside."""


def attribute(node: Node, name: str) -> str:
    """An attribute's value; an empty string if it has none."""
    return (node.attrs or {}).get(name) or ""


def classes(node: Node) -> list[str]:
    return attribute(node, "class").lower().split()


def children(node: Node) -> list[Node]:
    return node.children or []


def text_of(node: Node) -> Iterator[str]:
    """The pieces of text in a node, in order, scripts and styles left out."""
    stack = [node]
    while stack:
        here = stack.pop()
        if here.name == "#text":
            yield str(here.data or "")
        elif here.name not in _CODE_ONLY:
            stack.extend(reversed(children(here)))


def survey(root: Node) -> Survey:
    """Titles, language, main parts and layout tables of a page."""
    found = Survey()
    mains: list[tuple[Node, bool]] = []
    main_words: dict[int, int] = {}
    words = other_words = 0
    stack = [_Place(root)]
    while stack:
        place = stack.pop()
        node, main = place.node, place.main
        if node.name == "#text":
            count = len(str(node.data or "").split())
            words += count
            if main is not None:
                main_words[id(main)] = main_words.get(id(main), 0) + count
            elif not place.is_around:
                other_words += count
            continue
        _note_metadata(node, found)
        if node.name in ("script", "style", "template", "svg"):
            continue
        is_main = node.name == "main" or attribute(node, "role").lower() == "main"
        if main is None and (is_main or node.name == "article"):
            main = node
            mains.append((node, is_main))
        table = place.table
        if table is not None and (node.name in HEADINGS or node.name in PREFORMATTED or node.name == "table"):
            found.layout_tables.add(id(table))
            found.seen.append(table)
        if node.name == "table":
            table = node
            if attribute(node, "role").lower() in ("presentation", "none"):
                found.layout_tables.add(id(node))
                found.seen.append(node)
        is_around = place.is_around or node.name == "nav" or node.name in _AROUND
        stack.extend(_Place(child, table, main, is_around) for child in reversed(children(node)))
    chosen = [node for node, is_main in mains if is_main] or [node for node, _ in mains]
    chosen_words = sum(main_words.get(id(node), 0) for node in chosen)
    if chosen_words > _MIN_MAIN_SHARE * words:
        _choose(chosen, found)
        own_words = sum(main_words.values()) + other_words
        found.only_mains = chosen_words >= max(_WHOLE_MAIN_WORDS, _WHOLE_MAIN_SHARE * own_words)
    return found


def _choose(mains: list[Node], found: Survey) -> None:
    found.mains = {id(node) for node in mains}
    found.seen += mains
    for node in mains:
        around: Node | None = node
        while around is not None and id(around) not in found.around_mains:
            found.around_mains.add(id(around))
            around = around.parent


def _note_metadata(node: Node, found: Survey) -> None:
    if node.name == "html":
        found.language = found.language or attribute(node, "lang") or attribute(node, "xml:lang")
    elif node.name == "title" and not found.title and node.namespace in (None, "html"):
        found.title = " ".join("".join(text_of(node)).split())
    elif node.name == "meta":
        kind = (attribute(node, "property") or attribute(node, "name")).lower()
        content = " ".join(attribute(node, "content").split())
        if kind == "og:title":
            found.social_title = found.social_title or content
        elif kind == "description":
            found.description = found.description or content


def is_dropped(node: Node, *, outside_main: bool) -> bool:
    """Whether a node and what is in it is no text of the page. `outside_main`: the page marks its main part, and
    this node is not in it."""
    name = node.name
    if name in ("html", "body"):
        return False
    if name in ("#comment", "!doctype") or name in _NEVER_TEXT:
        return name != "button" or not _is_heading_text(node)
    role = attribute(node, "role").lower()
    if name == "nav" or role == "navigation" or _is_hidden(node, role):
        return True
    if outside_main and (name in _AROUND or role in _AROUND_ROLES):
        return True
    marks = classes(node)
    if any(mark in _HIDING_CLASSES or mark in _LINE_NUMBERS for mark in marks):
        return True
    if outside_main and _NOTICE.search(f"{attribute(node, 'id')} {' '.join(marks)}"):
        return True
    return name == "a" and _is_permalink(node)


def is_code_only(node: Node) -> bool:
    """Whether a node never holds text, whatever the page looks like."""
    return node.name in _CODE_ONLY or node.name in ("#comment", "!doctype")


def _is_hidden(node: Node, role: str) -> bool:
    attrs = node.attrs or {}
    if role == "tabpanel":
        return False
    if "hidden" in attrs and (attrs["hidden"] or "").lower() != "until-found":
        return True
    if node.name in _SIGNS and attribute(node, "aria-hidden").lower() == "true":
        return True
    style = attrs.get("style")
    return bool(style and _HIDING_STYLE.search(style[:4096]))


def _is_heading_text(button: Node) -> bool:
    """Whether a button is all that the heading around it shows, as in an accordion."""
    around = button.parent
    for _ in range(3):
        if around is None:
            return False
        if around.name in HEADINGS or around.name in ("summary", "dt"):
            return _words(around) == _words(button)
        around = around.parent
    return False


def _words(node: Node) -> list[str]:
    return "".join(text_of(node)).split()


def _is_permalink(node: Node) -> bool:
    """A link to a place on the page that shows nothing but a sign, such as the pilcrow behind a heading."""
    if not attribute(node, "href").startswith("#"):
        return False
    shown = ""
    for piece in text_of(node):
        shown += piece.strip()
        if len(shown) > 2:
            return False
    return bool(shown) and not any(character.isalnum() for character in shown)
