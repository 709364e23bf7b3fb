"""The pages say what is true: every command, option, key, route, code and file, and none that is not there."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
import tomli
from pages_kit import (
    COMMON_OPTIONS,
    HOUSE,
    PAGES,
    ROOMS,
    Fence,
    all_options,
    anchors_of,
    calls_in,
    calls_in_prose,
    fences,
    leaves,
    links_of,
    options_of,
    page,
    prose_of,
    rows_of,
    section_of,
    spans_of,
    text_of,
    typed,
    wrong_call,
)

from ragd.chunkers.detect import _BY_EXTENSION
from ragd.chunkers.parsers.extensions import GRAMMAR_LANGUAGES
from ragd.chunkers.registry import TYPES, chunker_names, entry_of
from ragd.daemon.api.app import create_app
from ragd.daemon.api.auth import SocketOwner
from ragd.daemon.api.tools import TOOLS
from ragd.daemon.cli.failure import EXIT_INTERRUPTED, EXIT_OUTPUT_CLOSED
from ragd.daemon.config import parse_config
from ragd.daemon.config_example import toml_value
from ragd.daemon.config_schema import CHUNKING_DEFAULTS, RootTable, RuleTable, Section, Settings
from ragd.daemon.errors import EXIT_SOME_FAILED, UsageError, UserError

OPERATIONS = page("docs/operations.md")
LANGUAGES = {"sh", "console", "toml", "json", "text", "python", "diff"}

IGNORED = {"gitignore", "ragdignore", "exclude", "builtin", "secret_name", "not_included", "outside_root"}
SKIPPED = {
    *{"binary", "empty_text", "encrypted", "too_large", "not_regular", "not_local", "unsupported", "generated"},
    "unstable",
}
FAILED = {"parse_error", "timeout", "memory", "crashed", "unreadable", "embed_error"}
OF_ROOTS = {"unavailable", "degraded", "mass_deletion"}
DROPPED = {*{"front_matter", "boilerplate", "markup", "quoted_reply", "running_header", "embedded_data", "cell_output"}}
REASONS = IGNORED | SKIPPED | FAILED | OF_ROOTS | DROPPED
"""The closed list of the outer contract."""


def _bare(cell: str) -> str:
    return cell.strip("`")


def _subclasses(kind: type[UserError]) -> set[type[UserError]]:
    return {kind}.union(*(_subclasses(below) for below in kind.__subclasses__()))


def _sources() -> list[Path]:
    return [path for room in ROOMS for path in sorted((HOUSE / room).rglob("*.py"))]


# --- the command line ----------------------------------------------------------------------------------


def test_every_command_stands_in_the_table_with_exactly_its_options() -> None:
    documented = {}
    for command, *_ in rows_of(section_of(OPERATIONS, "Commands")):
        synopsis = _bare(command)
        words = tuple(re.match(r"ragd((?: [a-z]+)+)", synopsis)[1].split())  # type: ignore[index]
        documented[words] = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", synopsis))
    assert documented == {words: options_of(command) for words, command in leaves()}


def test_the_options_of_all_commands_are_documented() -> None:
    told = spans_of(section_of(OPERATIONS, "Commands"))
    assert {span.split()[0] for span in told} >= COMMON_OPTIONS
    assert "ragd --version" in told


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_command_and_option_a_page_names_exists(path: Path) -> None:
    calls = [*calls_in_prose(path)]
    calls += [call for fence in fences("sh", "console") if fence.page == path for call in calls_in(typed(fence))]
    assert [f"ragd {' '.join(call)}: {why}" for call in calls if (why := wrong_call(call))] == []
    alone = {span.split()[0] for span in spans_of(prose_of(path)) if re.match(r"--?[a-z]", span)}
    others = {"-wal", "-shm"}  # what SQLite calls its files
    assert alone - all_options() - others == set()


def test_a_call_that_cannot_be_made_is_noticed() -> None:
    assert wrong_call(["search", "x", "-k", "3", "--type", "csv"]) is None
    assert wrong_call(["config", "check"]) is None
    assert wrong_call(["--config", "f", "status", "--failed"]) is None
    assert wrong_call(["serch", "x"]) == "there is no command 'serch'"
    assert wrong_call(["search", "--typ", "csv"]) == "search has no option --typ"
    assert list(calls_in('ragd get a:1-2 | head\nx=$(ls)\n.venv/bin/ragd search "a b"  # why')) == [
        ["get", "a:1-2"],
        ["search", "a b"],
    ]


def test_every_exit_code_is_documented() -> None:
    known = {0, EXIT_SOME_FAILED, EXIT_INTERRUPTED, EXIT_OUTPUT_CLOSED}
    known |= {kind.exit_code for kind in _subclasses(UserError)}
    assert {int(code) for code, _ in rows_of(section_of(OPERATIONS, "Exit codes"))} == known


def test_every_message_that_is_explained_can_be_seen() -> None:
    said = " ".join(re.sub(r"""["'] *\n *f?["']""", "", text_of(path)) for path in _sources())
    told = [span for row in rows_of(section_of(OPERATIONS, "What to do when ...")) for span in spans_of(row[0])]
    assert len(told) >= 10
    assert [message for message in told if message not in said] == []


def test_every_environment_variable_is_documented() -> None:
    used = {name for path in _sources() for name in re.findall(r'"(RAGD_[A-Z_]+)"', text_of(path))}
    told = {_bare(name) for name, _ in rows_of(section_of(OPERATIONS, "Environment variables"))}
    assert used == told


# --- the configuration ---------------------------------------------------------------------------------


def _tables() -> dict[str, type[Section]]:
    sections = {f"`[{name}]`": type(field.default) for name, field in Settings.model_fields.items() if name != "root"}
    return {**sections, "`[[root]]`": RootTable, "`[[root.rule]]`": RuleTable}


def _default(table: type[Section], key: str) -> str:
    field = table.model_fields[key]
    if field.is_required():
        return "required"
    if field.default is None and table is not RuleTable and key in CHUNKING_DEFAULTS:
        return f"`{toml_value(CHUNKING_DEFAULTS[key])}`"
    return "not set" if field.default is None else f"`{toml_value(field.default)}`"


@pytest.mark.parametrize("heading", _tables())
def test_every_key_is_documented_with_its_default(heading: str) -> None:
    table = _tables()[heading]
    rows = rows_of(section_of(page("docs/configuration.md"), heading))
    documented = {_bare(key): default for key, default, _ in rows}
    assert documented == {key: _default(table, key) for key in table.model_fields}


@pytest.mark.parametrize("fence", fences("toml"), ids=lambda fence: fence.place)
def test_every_toml_example_is_accepted_or_refused_as_it_says(fence: Fence, tmp_path: Path) -> None:
    tomli.loads(fence.body)
    if fence.marker == "refused":
        with pytest.raises(UsageError) as refused:
            parse_config(fence.body, Path("/home/ines/.config/ragd/config.toml"))
        printed = "\n".join([f"ragd: {refused.value}", *(f"  {problem}" for problem in refused.value.problems)])
        assert printed in text_of(fence.page), "the message beside it is another one"
    else:
        assert fence.marker == ""
        parse_config(fence.body, tmp_path / "config.toml")


# --- the interfaces ------------------------------------------------------------------------------------


def test_every_http_route_is_documented() -> None:
    app = create_app(None, SocketOwner())  # type: ignore[arg-type]  # nothing is asked
    routes = {
        f"{method} {route.path}"
        for route in app._app.routes  # type: ignore[attr-defined]  # behind the guard
        for method in route.methods - {"HEAD"}
    }
    section = section_of(page("docs/mcp.md"), "HTTP")
    documented = [_bare(row[0]) for row in rows_of(section) if row[0].startswith(("`GET", "`POST"))]
    assert sorted(documented) == sorted(routes)
    named = {
        span for path in PAGES for span in spans_of(prose_of(path)) if re.match(r"(?:GET|POST|PUT|DELETE) /", span)
    }
    assert named <= routes


def test_every_http_error_is_documented() -> None:
    sources = "".join(text_of(path) for path in sorted((HOUSE / "daemon" / "api").glob("*.py")))
    known = set(re.findall(r'RefusedError\(\s*\d{3},\s*"(\w+)"', sources))
    known |= {kind.code for kind in _subclasses(UserError)} | {"invalid", "internal", "method_not_allowed"}
    rows = rows_of(section_of(page("docs/mcp.md"), "Errors"))
    assert {code for row in rows for code in spans_of(row[1])} == known


def test_every_mcp_tool_is_documented() -> None:
    rows = rows_of(section_of(page("docs/mcp.md"), "MCP"))
    assert {_bare(row[0]): row[2] == "no" for row in rows} == {tool.name: tool.is_read_only for tool in TOOLS}


@pytest.mark.parametrize("fence", fences("json"), ids=lambda fence: fence.place)
def test_every_snippet_for_assistants_calls_a_command_that_exists(fence: Fence) -> None:
    for server in json.loads(fence.body)["mcpServers"].values():
        assert server["command"] == "ragd"
        assert wrong_call(server["args"]) is None


# --- what becomes of a file ----------------------------------------------------------------------------


def _given_out() -> set[str]:
    """The reason codes that stand as texts of their own somewhere in the three rooms."""
    found = set()
    for path in _sources():
        for node in ast.walk(ast.parse(text_of(path))):
            if isinstance(node, ast.Constant) and node.value in REASONS:
                found.add(node.value)
    return found


def test_every_reason_code_is_documented_and_none_more() -> None:
    section = section_of(page("docs/watching.md"), "Reason codes")
    rows = {_bare(code): state for code, state, _ in rows_of(section)}
    given = _given_out()
    assert set(rows) == given
    assert set(spans_of(section.partition("Reserved for later")[2])) == REASONS - given
    states = {
        "ignored": IGNORED,
        "skipped": SKIPPED - {"unstable"} | {"outside_root"},
        "failed": FAILED,
        "pending": {"unstable"},
        "of a root": OF_ROOTS,
        "of a region": DROPPED,
    }
    for code, named in rows.items():
        assert all(code in states[state] for state in named.split(", ")), code


def test_every_type_is_documented_with_its_files_and_its_chunker() -> None:
    section = section_of(page("docs/formats.md"), "Types")
    rows = {_bare(kind): (set(spans_of(files)), _bare(chunker)) for kind, files, chunker, _ in rows_of(section)}
    listed = set(spans_of(section.partition("each a type of its own:")[2].partition("\n\n")[0]))
    assert listed == {kind for kind in TYPES if kind not in rows}
    assert all(entry_of(kind).strategy == "blocks" for kind in listed)
    for kind, (files, chunker) in rows.items():
        if kind == "a language below":
            continue
        extensions = {f".{end}" for end, known in _BY_EXTENSION.items() if known == kind}
        extensions |= {f".{end}" for end in GRAMMAR_LANGUAGES.get(kind, "").split()}
        assert (files, chunker) == (extensions, entry_of(kind).strategy), kind


def test_every_chunker_is_documented() -> None:
    rows = rows_of(section_of(page("docs/formats.md"), "Chunkers"))
    assert sorted(_bare(row[0]) for row in rows) == sorted(chunker_names())


# --- the house -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_link_leads_somewhere(path: Path) -> None:
    broken = []
    for link in links_of(path):
        if re.match(r"https?:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_every_file_a_page_names_is_there(path: Path) -> None:
    named = re.compile(r"(?:chunkers|store|daemon|tests|docs|benchmarks|\.ci)/[a-z0-9_./-]*")
    missing = [span for span in spans_of(prose_of(path)) if named.fullmatch(span) and not (HOUSE / span).exists()]
    assert missing == []


def test_every_make_target_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", text_of(HOUSE / "Makefile"), re.M))
    code = [fence.body for fence in fences("sh")] + [span for path in PAGES for span in spans_of(prose_of(path))]
    named = {target for piece in code for target in re.findall(r"(?:^|\s)make ([a-z][a-z-]*)", piece)}
    assert named
    assert named <= targets


@pytest.mark.parametrize("room", ROOMS)
def test_the_file_tables_of_the_design_are_the_tree(room: str) -> None:
    rows = rows_of(section_of(page("docs/design.md"), room))
    named = [name for row in rows for name in spans_of(row[0])]
    there = {
        path.relative_to(HOUSE / room).as_posix()
        for pattern in ("*.py", "*.sql")
        for path in (HOUSE / room).rglob(pattern)
        if path.name != "__init__.py"
    }
    assert len(named) == len(set(named)), "a file is named twice"
    assert set(named) == there


def test_every_benchmark_is_documented_with_options_it_takes() -> None:
    text = text_of(page("docs/benchmarks.md"))
    scripts = {path.name: text_of(path) for path in (HOUSE / "benchmarks").glob("*.py")}
    assert set(re.findall(r"`benchmarks/(\w+\.py)", text)) == set(scripts)
    for call in re.findall(r"^\.venv/bin/python (benchmarks/.*)$", text, re.M):
        script, *options = call.split()
        source = scripts[Path(script).name]
        assert all(f'"{option}"' in source for option in options if option.startswith("--")), call


def test_every_fence_is_of_a_kind_that_is_checked() -> None:
    assert [fence.place for fence in fences() if fence.language not in LANGUAGES] == []
    markers = re.compile(r"|refused|transcript|not run: .+|file: \S+|entries: \S+")
    assert [fence.place for fence in fences() if not markers.fullmatch(fence.marker)] == []
