"""What a syntax tree says about one node: what it defines, how that is called, where its body is.

Must stay true: nothing here recurses or looks at more than a node's own children and its chain of fields, so that
asking about every node of a file once is linear.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node, Parser, Tree

from ragd.chunkers.parsers.languages import SEQUENCES, Grammar, language_of

MAX_REPORTS_A_BYTE, MIN_REPORTS = 0.2, 2000
"""tree-sitter reports its progress about once in 100 steps; real files need 0.003 to 0.04 reports a byte. Recovery
from errors can take hundreds of times that: then the file is cut by its layout, in the same way on every machine."""
MAX_UNCLOSED = 50
"""From each `/*` without an end the lexer reads to the end of the file and back, which no step counter sees; chains
of `<` without an end do the same to the stack of the Java parser. More of them than this, and no tree is made."""
_OPENERS = ((b"/*", b"*/"), (b'r#"', b'"#'), (b'R"(', b")"))
_STATEMENT_END = re.compile(rb"[;{}()]")
_SLICE_BYTES = 1 << 16
_MAX_NAME_CHARS = 120
_MAX_SIGNATURE_CHARS = 120
_MAX_HOPS = 8
"""How far a name or a body is looked for below its definition."""

_GENERIC_ARGUMENTS = re.compile(r"\s*<.*", re.DOTALL)
_SPACES = re.compile(r"\s+")
_JS_DECLARATIONS = ("lexical_declaration", "variable_declaration")
_GO_SPECS = {
    "type_declaration": "type_spec",
    "const_declaration": "const_spec",
    "var_declaration": "var_spec",
}


def parse_tree(source: bytes, grammar: Grammar) -> Tree | None:
    """The syntax tree of UTF-8 `source`, or None when that would take far more time than its length."""
    if _has_unclosed(source, grammar):
        return None
    budget = MIN_REPORTS + int(len(source) * MAX_REPORTS_A_BYTE)
    reports = 0

    def progress(_offset: int, _has_error: bool) -> bool:
        nonlocal reports
        reports += 1
        return reports > budget

    parser = Parser(language_of(grammar.language))
    try:
        return parser.parse(lambda offset, _point: source[offset : offset + _SLICE_BYTES], progress_callback=progress)
    except ValueError:  # how the binding says that `progress` stopped it
        return None


def _has_unclosed(source: bytes, grammar: Grammar) -> bool:
    if grammar.language == "python":
        return False
    if any(source.count(opener, max(0, source.rfind(closer))) > MAX_UNCLOSED for opener, closer in _OPENERS):
        return True
    if grammar.language != "java" or source.count(b"<") <= MAX_UNCLOSED:
        return False
    return any(part.count(b"<") - part.count(b">") > MAX_UNCLOSED for part in _STATEMENT_END.split(source))


@dataclass(frozen=True, slots=True)
class Syntax:
    """Answers about nodes of one tree."""

    source: bytes
    grammar: Grammar

    def unwrapped(self, node: Node) -> Node:
        """The definition inside decorators, `export`, `template <...>`; the node itself if there is none."""
        core = node
        for _ in range(_MAX_HOPS):
            if core.type not in self.grammar.wrappers:
                break
            inner = _field(core, "definition", "declaration", "value")
            if inner is None and core.named_child_count:
                inner = core.named_child(core.named_child_count - 1)
            if inner is None:
                break
            core = inner
        return core

    def kind_of(self, core: Node) -> str:
        """One of function, class, variable, group, import, comment, attribute, docstring, statement."""
        grammar, kind = self.grammar, core.type
        if kind in grammar.comments:
            return "comment"
        if kind in grammar.attributes:
            return "attribute"
        if kind in grammar.imports or self._imports_by_use(core):
            return "import"
        if kind in grammar.functions:
            return "function"
        if kind in grammar.containers:
            return self._kind_of_container(core)
        if kind in grammar.variables:
            return self._kind_of_variable(core)
        if kind in grammar.groups:
            return "group"
        return "docstring" if kind == "string" and grammar.language == "python" else "statement"

    def _imports_by_use(self, core: Node) -> bool:
        if core.type == "mod_item":  # `mod name;`
            return core.child_by_field_name("body") is None
        if core.type == "preproc_def":  # the guard of a header: a name without a value
            return core.child_by_field_name("value") is None
        if core.type in _JS_DECLARATIONS:
            value = _value(core)
            called = value.child_by_field_name("function") if value is not None else None
            return called is not None and self._text(called) == "require"
        return False

    def _kind_of_container(self, core: Node) -> str:
        if core.type == "type_declaration" and _single(core, "type_spec") is None:
            return "statement"
        if core.type.endswith("_specifier") and core.child_by_field_name("body") is None:
            return "variable"
        return "class"

    def _kind_of_variable(self, core: Node) -> str:
        declared = core.child_by_field_name("type")
        if declared is not None and declared.type in self.grammar.containers:
            return "class" if declared.child_by_field_name("body") is not None else "variable"
        value = _value(core)
        if value is not None and value.type in self.grammar.functions:
            return "function"
        return "class" if value is not None and value.type in self.grammar.containers else "variable"

    def name_of(self, core: Node) -> str | None:
        """The name a definition goes by, as the source spells it."""
        if core.type == "impl_item":
            implemented = self._plain(core.child_by_field_name("type"))
            trait = self._plain(core.child_by_field_name("trait"))
            return f"{trait} for {implemented}" if trait and implemented else implemented
        named = self._named(core)
        return self._text(named) if named is not None else None

    def _named(self, core: Node) -> Node | None:
        if core.type in _JS_DECLARATIONS:
            core = _single(core, "variable_declarator") or core
        elif core.type in _GO_SPECS:
            core = _single(core, _GO_SPECS[core.type]) or core
        found = _field(core, "name", "key")
        if found is None and core.type in ("assignment", "assignment_expression"):
            found = core.child_by_field_name("left")
        declarator = core.child_by_field_name("declarator") if found is None else None
        for _ in range(_MAX_HOPS):
            if declarator is None:
                return found
            found, declarator = declarator, _declared_by(declarator)
        declared = core.child_by_field_name("type") if found is None else None
        if declared is not None and declared.type in self.grammar.containers:
            found = declared.child_by_field_name("name")
        return found

    def receiver_of(self, core: Node) -> str | None:
        """The type a Go method belongs to."""
        receiver = core.child_by_field_name("receiver")
        if receiver is None or not receiver.named_child_count:
            return None
        name = self._plain(receiver.named_children[0].child_by_field_name("type"))
        return name.lstrip("*").split("[")[0].strip() if name else None

    def signature_of(self, core: Node) -> str:
        """What stands in front of a definition's body, on one line: `class Stack(Generic[T]):`."""
        body = body_of(core)
        start = core.start_byte
        first = core.child(0) if core.child_count else None
        for modifier in first.children if first is not None and first.type == "modifiers" else ():
            if "annotation" in modifier.type:
                start = modifier.end_byte
        end = min(body.start_byte if body is not None else core.end_byte, start + 8 * _MAX_SIGNATURE_CHARS)
        line = _SPACES.sub(" ", self.source[start:end].decode("utf-8", "ignore")).strip().rstrip("{").rstrip()
        return line if len(line) <= _MAX_SIGNATURE_CHARS else line[:_MAX_SIGNATURE_CHARS].rsplit(" ", 1)[0] + " ..."

    def _text(self, node: Node) -> str | None:
        """A short node's text on one line."""
        if node.end_byte - node.start_byte > 4 * _MAX_NAME_CHARS:
            return None
        raw = self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")
        text = _SPACES.sub(" ", raw).strip()
        return text if 0 < len(text) <= _MAX_NAME_CHARS else None

    def _plain(self, node: Node | None) -> str | None:
        """The same without generic arguments."""
        text = self._text(node) if node is not None else None
        return _GENERIC_ARGUMENTS.sub("", text) or None if text else None


def body_of(core: Node) -> Node | None:
    """The node that holds what a definition defines, looked for through values and types."""
    node: Node | None = core
    for _ in range(_MAX_HOPS):
        if node is None:
            return None
        body = node.child_by_field_name("body")
        if body is not None:
            return body
        if node.type in _GO_SPECS:
            node = _single(node, _GO_SPECS[node.type])
        else:
            node = _value(node) or node.child_by_field_name("type")
        if node is not None and node.type in SEQUENCES:
            return node
        if node is not None and node.type in ("struct_type", "interface_type"):  # Go: its body has no field
            return _single(node, "field_declaration_list") or node
    return None


def _value(core: Node) -> Node | None:
    """What a declaration or an assignment gives its name, if it is one name only."""
    if core.type in _JS_DECLARATIONS:
        declarator = _single(core, "variable_declarator")
        return declarator.child_by_field_name("value") if declarator is not None else None
    return _field(core, "right", "value")


def _declared_by(declarator: Node) -> Node | None:
    """The next node towards the name in a C declarator; None when this is the name."""
    inner = declarator.child_by_field_name("declarator")
    if inner is not None:
        return inner
    if declarator.type == "variable_declarator":  # Java
        return declarator.child_by_field_name("name")
    if declarator.type in ("reference_declarator", "parenthesized_declarator") and declarator.named_child_count:
        return declarator.named_child(declarator.named_child_count - 1)  # the grammar gives it no field
    return None


def _field(node: Node, *names: str) -> Node | None:
    for name in names:
        found = node.child_by_field_name(name)
        if found is not None:
            return found
    return None


def _single(node: Node, kind: str) -> Node | None:
    found = [child for child in node.named_children if child.type == kind]
    return found[0] if len(found) == 1 else None
