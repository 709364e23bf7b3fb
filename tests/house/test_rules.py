"""The walls that import-linter cannot say: one door to each third party, a pure room of chunkers, short files.

Read from the source as a tree of syntax, so that an import inside a function counts like one at the top.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
ROOMS = ("chunkers", "store", "daemon")
MOST_LINES = 400

DOORS = {
    "watchdog": r"daemon/files/(inotify|inotify_tree|observer)\.py",
    "apscheduler": r"daemon/schedule\.py",
    "tomli": r"daemon/config(_\w+)?\.py",
    "chromadb": r"store/chroma/child\.py",
    "sentence_transformers": r"store/embedding/transformer\.py",
    "transformers": r"store/embedding/transformer\.py",
    "torch": r"store/embedding/transformer\.py",
    "tiktoken": r"chunkers/tokens\.py",
    "apsw": r"store/sqlite\.py",
    "huggingface_hub": r"store/embedding/model_files\.py",
    "mcp": r"daemon/api/mcp\.py",
    "uvicorn": r"daemon/api/server\.py",
    "starlette": r"daemon/api/(app|server)\.py",
    "httpx": r"daemon/api/client\.py",
    "click": r"daemon/cli/\w+\.py",
    "rich": r"daemon/cli/\w+\.py",
    "markdown_it": r"chunkers/parsers/markdown\.py",
    "justhtml": r"chunkers/parsers/html(_\w+)?\.py",
    "tree_sitter": r"chunkers/parsers/(languages|syntax|code)\.py",
}
"""Third party -> the only files that import it."""

HEAVY = ("torch", "sentence_transformers", "transformers", "tiktoken", "tokenizers", "tree_sitter_python", "mcp")
"""Never imported when a module is: only inside the function that needs it."""

HEAVY_MODULES = frozenset({"store/embedding/transformer.py", "daemon/api/mcp.py"})
"""Modules that are themselves imported only inside functions (checked below), so that they may import at the top."""

IMPURE = frozenset(
    """os pathlib io shutil tempfile glob fileinput mmap socket ssl http urllib threading _thread multiprocessing
    concurrent subprocess asyncio selectors signal time datetime random secrets uuid logging sqlite3 platform getpass
    resource fcntl ctypes httpx requests psutil platformdirs tomli apsw numpy torch
    chromadb""".split()  # noqa: SIM905 - a list of names reads as names
)
"""Files, clocks, threads, networks, chance, the configuration: nothing of it in the chunkers."""

IMPURE_CALLS = frozenset({"open", "print", "input", "exec", "eval", "breakpoint", "__import__"})

NAMES_OF_PACKAGES = {
    "yaml": "pyyaml",
    "markdown_it": "markdown-it-py",
    "mdit_py_plugins": "mdit-py-plugins",
    "pydantic_core": "pydantic",  # the errors that its validators raise
    "mcp_types": "mcp",  # the types of its protocol
    "anyio": "mcp",  # its streams are anyio's
    "transformers": "sentence-transformers",  # only to keep its bars off a terminal
}
"""Import name -> the distribution that must be declared for it, where the two differ. The last ones are part of what
that distribution offers."""


@dataclass(frozen=True)
class Import:
    """One name that a file imports: `module` in full, the line, and whether this happens when the file is imported."""

    file: str
    module: str
    line: int
    at_once: bool

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


@cache
def sources() -> dict[str, str]:
    """Path in the repository -> text, of every Python file of the rooms."""
    found = {
        str(path.relative_to(HOUSE)): path.read_text(encoding="utf-8")
        for room in ROOMS
        for path in sorted((HOUSE / room).rglob("*.py"))
    }
    assert len(found) > 100
    return found


@cache
def tree_of(file: str) -> ast.Module:
    return ast.parse(sources()[file], file)


@cache
def all_imports() -> tuple[Import, ...]:
    return tuple(found for file in sources() for found in imports_of(file, tree_of(file)))


def imports_of(file: str, node: ast.AST, at_once: bool = True) -> Iterator[Import]:
    """Every import under a node. `if TYPE_CHECKING:` is left out: it never runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from imports_of(file, ast.Module([other], []), at_once)
        elif isinstance(child, ast.Import):
            for name in child.names:
                yield Import(file, name.name, child.lineno, at_once)
        elif isinstance(child, ast.ImportFrom):
            for name in child.names:
                yield Import(file, f"{child.module}.{name.name}", child.lineno, at_once)
        else:
            inner = at_once and not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports_of(file, child, inner)


def calls_of(file: str) -> Iterator[tuple[str, int]]:
    """(name, line) of every call of a plain name."""
    for node in ast.walk(tree_of(file)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id, node.lineno


def test_what_is_looked_for_is_seen() -> None:
    """The reader of imports itself, on a file that has one of each."""
    text = (
        "import a.b\nfrom c import d\nif TYPE_CHECKING:\n    import never\nelse:\n    import other\n"
        "def f():\n    import inner\n    g = lambda: __import__('x')\nclass K:\n    from e import f\n"
        "try:\n    import t\nexcept ImportError:\n    t = None\n"
    )
    found = {(seen.module, seen.at_once) for seen in imports_of("x.py", ast.parse(text))}
    assert found == {
        ("a.b", True),
        ("c.d", True),
        ("other", True),
        ("inner", False),
        ("e.f", True),
        ("t", True),
    }


@pytest.mark.parametrize("package", DOORS)
def test_each_third_party_is_behind_its_door(package: str) -> None:
    users = [found for found in all_imports() if found.top == package]
    assert users or package == "transformers", f"nobody imports {package}: is it still needed?"
    assert [str(found) for found in users if not re.fullmatch(DOORS[package], found.file)] == []


def test_no_import_goes_around_the_doors() -> None:
    """importlib.import_module would be a second door: the registry, the grammars and the command line look a module up
    below a fixed package; the parsing child gets the name of its function from its parent."""
    by_name = {
        file
        for file in sources()
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "import_module")
    }
    assert by_name == {
        "chunkers/registry.py",
        "chunkers/parsers/languages.py",
        "daemon/cli/main.py",
        "daemon/parsing/child.py",
    }


def test_what_is_heavy_is_imported_where_it_is_used() -> None:
    early = [
        str(found)
        for found in all_imports()
        if found.top in HEAVY and found.at_once and found.file not in HEAVY_MODULES
    ]
    assert early == []
    for file in HEAVY_MODULES:
        module = "ragd." + file.removesuffix(".py").replace("/", ".")
        users = [found for found in all_imports() if found.module == module or found.module.startswith(f"{module}.")]
        assert users, f"nobody imports {module}"
        assert [str(found) for found in users if found.at_once] == []


def test_the_chunkers_are_pure() -> None:
    """Bytes in, chunks out: no files, no clock, no threads, no network, no chance, no configuration."""
    imports = [found for found in all_imports() if found.file.startswith("chunkers/")]
    assert len(imports) > 100
    assert [str(found) for found in imports if found.top in IMPURE] == []
    calls = [
        f"{file}:{line} calls {name}"
        for file in sources()
        if file.startswith("chunkers/")
        for name, line in calls_of(file)
        if name in IMPURE_CALLS
    ]
    assert calls == []


def test_no_room_looks_up_the_hill() -> None:
    """daemon -> store -> chunkers, also inside functions and for types alone."""
    below = {"chunkers": ("ragd.store", "ragd.daemon"), "store": ("ragd.daemon",)}
    for room, forbidden in below.items():
        for file, text in sources().items():
            if file.startswith(f"{room}/"):
                for name in forbidden:
                    assert not re.search(rf"^\s*(from|import) {re.escape(name)}\b", text, re.MULTILINE), (file, name)


def test_imports_name_the_whole_package() -> None:
    """A bare `import store` would find another distribution's module of that name."""
    relative = [
        f"{file}:{node.lineno}"
        for file in sources()
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []
    assert [str(found) for found in all_imports() if found.top in ROOMS] == []


def test_no_file_is_too_long() -> None:
    lengths = {file: text.count("\n") for file, text in sources().items()}
    assert {file: lines for file, lines in lengths.items() if lines > MOST_LINES} == {}


def test_every_module_says_what_it_owns() -> None:
    silent = [file for file in sources() if tree_of(file).body and not ast.get_docstring(tree_of(file))]
    assert silent == []


def test_only_the_command_line_prints() -> None:
    """Standard output belongs to answers, and to the protocol of `ragd mcp`."""
    printing = [
        f"{file}:{line}"
        for file in sources()
        if not file.startswith("daemon/cli/")
        for name, line in calls_of(file)
        if name in ("print", "input")
    ]
    assert printing == []


def test_no_unfinished_business() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK|NotImplementedError)\b")
    found = [
        f"{file}:{number}"
        for file, text in sources().items()
        for number, line in enumerate(text.splitlines(), 1)
        if marks.search(line)
    ]
    assert found == []


def test_no_error_is_swallowed() -> None:
    """A handler of every error must raise, answer or record: its body is more than `pass` or `continue`."""
    silent = []
    for file in sources():
        for node in ast.walk(tree_of(file)):
            if not isinstance(node, ast.ExceptHandler):
                continue
            kind = ast.unparse(node.type) if node.type else ""
            does_nothing = all(isinstance(step, ast.Pass | ast.Continue) for step in node.body)
            if kind == "" or (kind in ("Exception", "BaseException") and does_nothing):
                silent.append(f"{file}:{node.lineno} except {kind}")
    assert silent == []


def test_what_is_imported_is_declared() -> None:
    """A library that only another one brings along may go away with it."""
    with (HOUSE / "pyproject.toml").open("rb") as file:
        wanted = tomllib.load(file)["project"]["dependencies"]
    declared = {re.split(r"[<>=!~\[; ]", line)[0].lower() for line in wanted}
    used = {found.top for found in all_imports()} - sys.stdlib_module_names - {"ragd"}
    assert len(used) > 15
    missing = {top for top in used if NAMES_OF_PACKAGES.get(top, top.replace("_", "-")) not in declared}
    assert missing == set()


def test_the_program_starts_without_torch_and_chromadb() -> None:
    program = "import ragd.daemon.cli.main, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50, cwd=HOUSE.anchor
    )
    loaded = set(done.stdout.split())
    assert "ragd.daemon.cli.main" in loaded
    assert loaded & {"torch", "chromadb", "sentence_transformers", "transformers", "numpy", "apsw", "pydantic"} == set()
