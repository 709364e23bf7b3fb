"""What the grammars call things: which node types define, contain, import, comment or only wrap.

Must stay true: nothing here knows how a file is cut; a new grammar is one more entry in `GRAMMARS`.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import cache

from tree_sitter import Language

from ragd.chunkers.parsers.extensions import language_by_name

NO_TYPES: frozenset[str] = frozenset()


def _types(names: str) -> frozenset[str]:
    """Node types written with blanks between them."""
    return frozenset(names.split())


@dataclass(frozen=True, slots=True)
class Grammar:
    """Node types of one tree-sitter grammar, by the part they play in a file."""

    language: str
    module: str
    """The installed package that holds the compiled grammar."""
    factory: str = "language"
    """The function of that package that returns it."""
    functions: frozenset[str] = NO_TYPES
    containers: frozenset[str] = NO_TYPES
    """Classes and whatever else holds definitions under a name of its own."""
    variables: frozenset[str] = NO_TYPES
    """Declarations that give a value or a type a name."""
    groups: frozenset[str] = NO_TYPES
    """What holds definitions without adding to their scope: `#ifdef`, `extern "C"`."""
    imports: frozenset[str] = NO_TYPES
    comments: frozenset[str] = _types("comment")
    attributes: frozenset[str] = NO_TYPES
    """Siblings that belong to what follows them: `#[derive]`, `public:`."""
    wrappers: frozenset[str] = NO_TYPES
    """Nodes around a definition that are part of it: decorators, `export`, `template <...>`."""
    doc_comments: tuple[str, ...] = ("/**", "///", "/*!", "//!")
    """How a comment begins that documents what follows, even on the first line of a file."""


SEQUENCES: frozenset[str] = _types(
    "block statement_block compound_statement statement_list declaration_list field_declaration_list class_body "
    "interface_body enum_body enum_body_declarations annotation_type_body constructor_body switch_block switch_body "
    "enumerator_list enum_variant_list match_block async_block unsafe_block const_block gen_block try_block object "
    "object_type initializer_list array dictionary list literal_value array_expression arguments argument_list "
    "import_spec_list var_spec_list use_list scoped_use_list program module source_file translation_unit "
    "element_value_array_initializer array_initializer parenthesized_expression token_tree"
)
"""Nodes that only hold a row of others: a cut is made between their children, never before themselves."""

CLOSERS: frozenset[str] = _types(
    "jsx_closing_element preproc_else string_content string_end string_fragment escape_sequence interpolation "
    "template_substitution raw_string_content"
)
"""Named nodes that go on with or end what stands before them, so that no piece begins with them."""

NAMESPACES: frozenset[str] = _types("namespace_definition mod_item internal_module module")
"""Containers whose first line says nothing but their name."""

_C_GROUPS = _types("preproc_if preproc_ifdef preproc_elif preproc_else linkage_specification")
_C_TYPES = _types("struct_specifier union_specifier enum_specifier")
_C_VARIABLES = _types("declaration type_definition preproc_function_def preproc_def")
_JS_FUNCTIONS = _types(
    "function_declaration generator_function_declaration method_definition function_expression arrow_function "
    "generator_function"
)
_JS_VARIABLES = frozenset(
    {"lexical_declaration", "variable_declaration", "assignment_expression", "pair", "field_definition"}
)
_TS_FUNCTIONS = _JS_FUNCTIONS | {"function_signature", "abstract_method_signature", "method_signature"}
_TS_CONTAINERS = _types(
    "class_declaration abstract_class_declaration class interface_declaration enum_declaration internal_module module"
)
_TS_VARIABLES = (_JS_VARIABLES - {"field_definition"}) | {"type_alias_declaration", "public_field_definition"}
_JS_WRAPPERS = _types("export_statement expression_statement")

_JAVASCRIPT = Grammar(
    language="javascript",
    module="tree_sitter_javascript",
    functions=_JS_FUNCTIONS,
    containers=_types("class_declaration class"),
    variables=_JS_VARIABLES,
    imports=_types("import_statement"),
    comments=_types("comment html_comment hash_bang_line"),
    attributes=_types("decorator"),
    wrappers=_JS_WRAPPERS,
)


def _typescript(language: str, factory: str) -> Grammar:
    return Grammar(
        language=language,
        module="tree_sitter_typescript",
        factory=factory,
        functions=_TS_FUNCTIONS,
        containers=_TS_CONTAINERS,
        variables=_TS_VARIABLES,
        imports=_types("import_statement import_alias"),
        comments=_JAVASCRIPT.comments,
        attributes=_types("decorator"),
        wrappers=_JS_WRAPPERS | {"ambient_declaration"},
    )


_C = Grammar(
    language="c",
    module="tree_sitter_c",
    functions=_types("function_definition"),
    containers=_C_TYPES,
    variables=_C_VARIABLES,
    groups=_C_GROUPS,
    imports=_types("preproc_include"),
)

GRAMMARS: dict[str, Grammar] = {
    "python": Grammar(
        language="python",
        module="tree_sitter_python",
        functions=_types("function_definition"),
        containers=_types("class_definition"),
        variables=_types("assignment type_alias_statement"),
        imports=_types("import_statement import_from_statement future_import_statement"),
        wrappers=_types("decorated_definition expression_statement"),
        doc_comments=(),
    ),
    "javascript": _JAVASCRIPT,
    "typescript": _typescript("typescript", "language_typescript"),
    "tsx": _typescript("tsx", "language_tsx"),
    "java": Grammar(
        language="java",
        module="tree_sitter_java",
        functions=_types(
            "method_declaration constructor_declaration compact_constructor_declaration static_initializer "
            "annotation_type_element_declaration"
        ),
        containers=_types(
            "class_declaration interface_declaration enum_declaration record_declaration annotation_type_declaration"
        ),
        variables=_types("field_declaration constant_declaration enum_constant"),
        imports=_types("import_declaration package_declaration"),
        comments=_types("line_comment block_comment"),
    ),
    "go": Grammar(
        language="go",
        module="tree_sitter_go",
        functions=_types("function_declaration method_declaration"),
        containers=_types("type_declaration type_spec"),
        variables=_types("const_declaration var_declaration"),
        imports=_types("import_declaration package_clause"),
        doc_comments=(),
    ),
    "rust": Grammar(
        language="rust",
        module="tree_sitter_rust",
        functions=_types("function_item function_signature_item macro_definition"),
        containers=_types("struct_item enum_item union_item trait_item impl_item mod_item"),
        variables=_types("const_item static_item type_item"),
        groups=_types("foreign_mod_item"),
        imports=_types("use_declaration extern_crate_declaration inner_attribute_item"),
        comments=_types("line_comment block_comment"),
        attributes=_types("attribute_item"),
        doc_comments=("///", "/**"),
    ),
    "c": _C,
    "cpp": Grammar(
        language="cpp",
        module="tree_sitter_cpp",
        functions=_types("function_definition"),
        containers=_C_TYPES | {"class_specifier", "namespace_definition", "concept_definition"},
        variables=_C_VARIABLES | {"field_declaration", "alias_declaration"},
        groups=_C_GROUPS,
        imports=_types("preproc_include using_declaration"),
        attributes=_types("access_specifier"),
        wrappers=_types("template_declaration"),
    ),
}


@cache
def language_of(name: str) -> Language:
    """The compiled grammar of one entry of `GRAMMARS`; loaded when first asked for."""
    grammar = GRAMMARS[name]
    return Language(getattr(importlib.import_module(grammar.module), grammar.factory)())


_CPP_MARKS = re.compile(
    r"^\s*(?:class|namespace|template|using|public|private|protected|constexpr)\b|\bstd::|#include <[a-z_]+>",
    re.MULTILINE,
)


def grammar_name(name: str, text: str) -> str:
    """Which entry of `GRAMMARS` reads the file called `name`; a header is C unless its text says C++, and a script
    without an extension is what its first line says."""
    extension = name.lower().rpartition(".")[2]
    if extension == "tsx":
        return "tsx"
    if extension == "h" and _CPP_MARKS.search(text):
        return "cpp"
    language = language_by_name(name)
    if language is not None:
        return language
    first_line = text.partition("\n")[0]
    if "deno" in first_line:
        return "typescript"
    return "javascript" if "node" in first_line else "python"
