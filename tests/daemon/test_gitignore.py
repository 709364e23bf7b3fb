"""Ignore files against git itself: the answers must be those of `git check-ignore --no-index`."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragd.daemon.files.gitignore import parse_file, split_lines
from ragd.daemon.files.ignore import IgnoreRules
from ragd.daemon.files.roots import RootRules
from ragd.daemon.files.walk import Walk
from ragd.daemon.files.wildmatch import translate

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "HOME": os.devnull,
    "LC_ALL": "C",
}


def git(folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, input=given, env=ENVIRONMENT, capture_output=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def ignored_by_git(folder: Path, paths: Sequence[bytes]) -> set[bytes]:
    answer = git(folder, "check-ignore", "--no-index", "--stdin", "-z", given=b"".join(p + b"\0" for p in paths))
    return set(answer.split(b"\0")) - {b""}


def entries(top: bytes) -> list[bytes]:
    """Every file and folder below, without .git."""
    found = []
    for folder, folders, files in os.walk(top):
        if b".git" in folders:
            folders.remove(b".git")
        found += [os.path.join(folder, name)[len(top) + 1 :] for name in folders + files if name != b".git"]
    return found


def ignored_by_us(top: bytes, paths: Sequence[bytes]) -> set[bytes]:
    explain = IgnoreRules(RootRules("r", top), builtin=False).explainer()
    return {path for path in paths if explain(path) is not None}


def make(top: Path, files: dict[str | bytes, str | bytes]) -> None:
    for name, text in files.items():
        path = os.path.join(os.fsencode(top), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())


def assert_equal_to_git(top: Path, repository: Path | None = None) -> set[bytes]:
    paths = entries(os.fsencode(top))
    theirs = ignored_by_git(repository or top, paths)
    assert ignored_by_us(os.fsencode(top), paths) == theirs
    return theirs


# --- random ones ---

PIECES = st.sampled_from(
    [
        "a", "b", "ab", "A", ".x", "*", "**", "?", "/", "**/", "/**", "[ab]", "[!a]", "[^b-]", "[a-b]", "[[:alpha:]]",
        "[[:digit:]x]", "[]a]", "[a", "\\a", "\\*", "\\", "!", " ", "\\ ", "#", "-", "[a\\]b]", "[--a]", "[[:no:]]",
        "é", "[/a]", "[b-a]", "{a,b}", "[[:a]", "\t",
    ]
)  # fmt: skip
LINES = st.lists(PIECES, min_size=1, max_size=6).map("".join)
FILES = st.lists(LINES, min_size=1, max_size=5).map("\n".join)
NAMES = st.sampled_from(
    ["a", "b", "ab", "ba", "A", "aab", "a b", "a ", "!a", "#a", "*", "é", "a.x", "-", "]", "[a", "x1", "{a,b}", "\\"]
)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose working tree each example makes anew."""
    top = tmp_path_factory.mktemp("repository")
    git(top, "init", "-q")
    return top


def build(top: Path, paths: Sequence[str], ignores: dict[str, str], exclude: str) -> None:
    for entry in os.scandir(top):
        if entry.name != ".git":
            shutil.rmtree(entry.path) if entry.is_dir() else os.unlink(entry.path)
    (top / ".git" / "info" / "exclude").write_text(exclude)
    for path in paths:
        try:
            make(top, {path: ""})
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    for folder, text in ignores.items():
        if (top / folder).is_dir():
            (top / folder / ".gitignore").write_bytes(os.fsencode(text))


@pytest.mark.timeout(300)
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    paths=st.lists(PATHS, min_size=1, max_size=12),
    ignores=st.dictionaries(st.sampled_from([".", "a", "b", "a/b", "ab"]), FILES, max_size=3),
    exclude=st.one_of(st.just(""), FILES),
)
def test_law_random_patterns_and_trees_are_judged_as_git_judges_them(
    bare: Path, paths: list[str], ignores: dict[str, str], exclude: str
) -> None:
    build(bare, paths, ignores, exclude)
    assert_equal_to_git(bare)


@pytest.mark.timeout(120)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(paths=st.lists(PATHS, min_size=1, max_size=12), text=FILES)
def test_law_a_walk_yields_what_git_does_not_ignore(bare: Path, paths: list[str], text: str) -> None:
    build(bare, paths, {".": text}, "")
    top = os.fsencode(bare)
    walk = Walk(IgnoreRules(RootRules("r", top), builtin=False))
    found = [seen.path for seen in walk if not seen.path.startswith(b".git/")]
    files = [path for path in entries(top) if os.path.isfile(os.path.join(top, path))]
    assert set(found) == set(files) - ignored_by_git(bare, files)
    assert found == sorted(found)


# --- chosen ones ---

CASES = {
    "anchored": "/a\nb/c\n",
    "folders only": "a/\nb.md/\n",
    "negation": "*.md\n!keep.md\n",
    "parent excluded": "a/\n!a/keep.md\n",
    "double stars": "**/x\na/**\nb/**/c\n",
    "stars in a name": "a**\n**b\na**/c\n",
    "spaces at the end": "a \nb\\ \nc\\  \n",
    "comments": "#a\n\\#b\n",
    "escapes": "\\!a\n\\a\n\\*\n",
    "classes": "[a-c].md\n[!a]x\n[[:upper:]]*\n",
    "carriage returns": "a.md\r\nb\r\n",
    "byte order mark": "\ufeffa.md\n",
    "no newline at the end": "a.md",
    "blank": "\n\n   \n/\n!\n//\n",
    "everything but": "*\n!*/\n!*.md\n",
}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
def test_known_shapes_are_judged_as_git_judges_them(bare: Path, text: str) -> None:
    names = ["a", "b", "c", "x", "keep.md", "a.md", "b.md/f", "#b", "#a", "!a", "*", "ax", "bx", "Upper", "ab/c"]
    names += ["b/x/c", "b/c", "a/keep.md", "a/b/c/d", "aab/c", "deep/x/y"]
    build(bare, [*names, "a ", "b ", "c  ", "c "], {".": text}, "")
    assert_equal_to_git(bare)


def test_a_root_below_the_top_of_the_repository(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {".gitignore": "*.log\n/docs/x\nout/\n", "docs/.gitignore": "!keep.log\n"})
    make(tmp_path, {f"docs/{name}": "" for name in ("a.log", "keep.log", "x/a.md", "sub/x/a.md", "out/a.md", "a.md")})
    (tmp_path / ".git" / "info" / "exclude").write_text("docs/a.md\n")
    assert assert_equal_to_git(tmp_path / "docs") == {b"a.log", b"x", b"x/a.md", b"out", b"out/a.md", b"a.md"}


def test_a_root_that_is_ignored_itself_is_ignored_as_a_whole_and_says_by_which_rule(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {".gitignore": "# mine\nprivate/\n", "private/notes/a.md": ""})
    root = IgnoreRules(RootRules("r", os.fsencode(tmp_path / "private" / "notes")))
    assert list(Walk(root)) == []
    decision = root.decide(b"a.md")
    assert decision is not None
    assert (decision.code, decision.rule) == ("gitignore", "private/")
    assert decision.source == f"{tmp_path}/.gitignore:2"
    open_root = IgnoreRules(RootRules("r", os.fsencode(tmp_path / "private" / "notes"), gitignore=False))
    assert [seen.path for seen in Walk(open_root)] == [b"a.md"]


def test_a_repository_inside_another_has_its_own_rules_only(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {".gitignore": "*.log\n", "sub/a.log": "", "sub/b.tmp2": "", "sub/c/d.log": ""})
    git(tmp_path / "sub", "init", "-q")
    make(tmp_path, {"sub/.gitignore": "*.tmp2\n", "sub/.git/info/exclude": "c/\n"})
    ours = ignored_by_us(os.fsencode(tmp_path), [b"sub/a.log", b"sub/b.tmp2", b"sub/c/d.log"])
    assert ours == {b"sub/b.tmp2", b"sub/c/d.log"}
    theirs = ignored_by_git(tmp_path / "sub", [b"a.log", b"b.tmp2", b"c/d.log"])
    assert theirs == {b"b.tmp2", b"c/d.log"}


def test_a_worktree_uses_the_exclude_file_of_its_repository(tmp_path: Path) -> None:
    main = tmp_path / "main"
    main.mkdir()
    git(main, "init", "-q")
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    git(main, *identity, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", "../tree")
    (main / ".git" / "info" / "exclude").write_text("*.log\n")
    make(tmp_path, {"tree/a.log": "", "tree/a.md": ""})
    assert assert_equal_to_git(tmp_path / "tree") == {b"a.log"}


def test_an_empty_git_folder_is_no_repository_and_gitignore_counts_without_one(tmp_path: Path) -> None:
    make(
        tmp_path, {".gitignore": "*.log\n", "a.log": "", "sub/.gitignore": "!b.log\n", "sub/b.log": "", "sub/c.log": ""}
    )
    (tmp_path / ".git").mkdir()
    assert ignored_by_us(os.fsencode(tmp_path), [b"a.log", b"sub/b.log", b"sub/c.log"]) == {b"a.log", b"sub/c.log"}


def test_a_linked_ignore_file_is_not_followed_as_git_does_not(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {"rules": "*.md\n", "a.md": ""})
    (tmp_path / ".gitignore").symlink_to("rules")
    assert ignored_by_us(os.fsencode(tmp_path), [b"a.md"]) == set()


def test_names_that_are_not_utf8_are_matched_byte_by_byte(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    make(tmp_path, {".gitignore": b"a\xff?\n[\xfe]b\n", b"a\xff\xc3": b"", b"\xfeb": b"", b"ab": b""})
    assert assert_equal_to_git(tmp_path) == {b"a\xff\xc3", b"\xfeb"}


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (b"*a" * 40 + b"b", b"a" * 250),
        (b"**/a" * 20 + b"/b", b"a/" * 120 + b"a"),
        (b"x/" + b"*a*" * 30 + b"b", b"x/" + b"a" * 250),
        (b"/**/" + b"*a/" * 15 + b"**/c", b"a/" * 200 + b"a"),
        (b"[a-z]*" * 30 + b"0", b"a" * 250),
    ],
)
def test_a_hostile_pattern_takes_polynomial_time(pattern: bytes, path: bytes) -> None:
    file = parse_file(pattern + b"\n", b"x")
    assert file is not None
    began = time.perf_counter()
    folder, _, name = path.rpartition(b"/")
    assert file.match(name, folder + b"/" if folder else b"", is_folder=False) is None
    assert time.perf_counter() - began < 2


def test_the_last_pattern_that_matches_decides_and_is_named() -> None:
    file = parse_file(b"*.md\n\n!keep.md\nkeep.*\n", b"/x/.gitignore")
    assert file is not None
    found = file.match(b"keep.md", b"", is_folder=False)
    assert found is not None
    assert (found.line, found.text, found.negated) == (4, b"keep.*", False)
    assert file.match(b"other", b"", is_folder=False) is None


def test_lines_keep_their_numbers() -> None:
    assert split_lines(b"# c\n\na \r\nb\\ \n") == [(3, b"a"), (4, b"b\\ ")]
    assert split_lines(b"a  ") == [(1, b"a")]


@pytest.mark.parametrize("pattern", [b"[a", b"a\\", b"[[:no:]]", b"x[\\"])
def test_patterns_that_match_nothing(pattern: bytes) -> None:
    assert translate(pattern, by_name=True) is None


@pytest.fixture(autouse=True)
def _no_outside_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
