"""Which paths are looked at: the built-in list, include and exclude, .ragdignore, and the order they are asked in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ragd.daemon.files import builtin_rules
from ragd.daemon.files.ignore import Decision, IgnoreRules
from ragd.daemon.files.roots import RootRules, arrange
from ragd.daemon.files.walk import Walk


def make(top: Path, *names: str, **texts: str) -> None:
    for name, text in {**dict.fromkeys(names, ""), **texts}.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def rules(top: Path, **given: object) -> IgnoreRules:
    return IgnoreRules(RootRules("r", os.fsencode(top), **given))  # type: ignore[arg-type]


def walked(made: IgnoreRules) -> set[str]:
    return {seen.path.decode() for seen in Walk(made)}


def code(made: IgnoreRules, path: str, *, is_folder: bool | None = None) -> str | None:
    decision = made.decide(path.encode(), is_folder=is_folder)
    return None if decision is None else decision.code


LEFTOVERS = [
    "~$report.docx", ".report.md.swp", "notes.md~", "#notes.md#", ".goutputstream-ABC", "x.part",
    "x.crdownload", "4913", ".#notes.md", "a.tmp", ".a.md.tmp", ".notes.md.swo", ".~lock.report.odt#",
    ".nfs000000000001", ".fuse_hidden0001", "a.md___jb_tmp___", "._a.md", ".DS_Store", "Thumbs.db",
    "desktop.ini", "~syncthing~a.md.x", ".syncthing.a.md.x", "A.TMP", ".a.md.swx", ".a.md.un~", "a.md.~1~",
    ".a.md.kate-swp", "a.opdownload", "x.partial", "~WRL0001.tmp", "a.md.download",
]  # fmt: skip


@pytest.mark.parametrize("name", LEFTOVERS)
def test_fault_b16_editor_leftovers_are_left_out(name: str) -> None:
    rule = builtin_rules.file_rule(name.encode())
    assert rule is not None
    assert rule[0] == "builtin"


SECRETS = [
    ".env", ".env.local", ".env.production", "prod.env", "id_rsa", "id_rsa.pub", "id_ed25519",
    "id_ecdsa_sk", "server.pem", "server.key", "passwords.kdbx", "credentials.json", "credentials",
    ".netrc", ".git-credentials", "cookies.sqlite", "Cookies", "Login Data", "key4.db", "logins.json",
    ".npmrc", ".pypirc", ".pgpass", ".bash_history", "secrets.yaml", "secrets.prod.toml",
    "client_secret_123.json", "service-account-1.json", "store.jks", "terraform.tfstate",
    "terraform.tfstate.backup", "wallet.dat", "mail.gpg", "ID_RSA", ".ENV", "ssh_host_rsa_key",
]  # fmt: skip


@pytest.mark.parametrize("name", SECRETS)
def test_fault_f8_secrets_are_left_out_by_name(name: str) -> None:
    rule = builtin_rules.file_rule(name.encode())
    assert rule is not None
    assert rule[0] == "secret_name"


WANTED = [
    "report.docx", "notes.md", "a.py", "env.py", "environment.yml", ".env.example", "secrets.md",
    "my secrets.txt", "key", "keys.md", "pem.md", "tmp", "part", "4913.md", "Makefile", "README", "id.md",
    "credentials.md", ".gitignore", "a#b.md", "~notes.md", "Cargo.lock", "config.json", "token.md",
    "book.epub", "page.html", "data.csv", "image.svg", "x.ipynb", "a.xlsx", "paper.pdf", "tmp.md", "-",
    "a~b", ".vimrc", "png", "zip",
]  # fmt: skip


@pytest.mark.parametrize("name", WANTED)
def test_ordinary_files_are_not_left_out(name: str) -> None:
    assert builtin_rules.file_rule(name.encode()) is None


@pytest.mark.parametrize("name", ["photo.JPG", "a.zip", "b.tar.gz", "c.mp4", "d.so", "e.sqlite", "f.woff2", "g.pyc"])
def test_media_archives_and_binaries_are_left_out(name: str) -> None:
    assert builtin_rules.file_rule(name.encode()) is not None


def test_folders_by_name_and_a_persons_own_folders_stay(tmp_path: Path) -> None:
    kept = ["build", "dist", "target", "vendor", "out", "bin", "env", "venv", "lib", "Trash notes", "packages", "tmp"]
    left = [
        ".git",
        ".hg",
        "node_modules",
        "__pycache__",
        ".venv",
        ".tox",
        "x.egg-info",
        ".idea",
        ".ssh",
        ".gnupg",
        ".aws",
    ]
    make(tmp_path, *(f"{folder}/a.md" for folder in kept + left))
    assert walked(rules(tmp_path)) == {f"{folder}/a.md" for folder in kept}
    assert code(rules(tmp_path), ".ssh/config") == "secret_name"
    assert code(rules(tmp_path), "node_modules/x/a.md") == "builtin"


def test_markers_tell_environments_and_caches_from_a_persons_folders(tmp_path: Path) -> None:
    make(
        tmp_path,
        "env/pyvenv.cfg",
        "env/lib/a.md",
        "target/CACHEDIR.TAG",
        "target/a.md",
        "notes/CACHEDIR.TAG",
        "notes/b.md",
    )
    (tmp_path / "target" / "CACHEDIR.TAG").write_bytes(builtin_rules.CACHE_SIGNATURE + b"\n# made by cargo\n")
    made = rules(tmp_path)
    assert walked(made) == {"notes/CACHEDIR.TAG", "notes/b.md"}
    assert code(made, "env/lib/a.md") == "builtin"
    decision = made.decide(b"target/a.md")
    assert decision is not None
    assert decision.path == b"target"
    assert code(made, "target", is_folder=True) == "builtin"


def test_a_root_that_is_itself_a_cache_or_has_an_ignored_name_is_what_the_person_asked_for(tmp_path: Path) -> None:
    top = tmp_path / "node_modules"
    make(top, "CACHEDIR.TAG", "a.md")
    (top / "CACHEDIR.TAG").write_bytes(builtin_rules.CACHE_SIGNATURE)
    assert "a.md" in walked(rules(top))


def test_include_says_what_is_wanted_and_takes_back_only_what_it_names(tmp_path: Path) -> None:
    make(
        tmp_path,
        "a.md",
        "b.txt",
        "docs/c.txt",
        "docs/deep/d.txt",
        "node_modules/m/e.md",
        "f.tmp",
        ".env",
        "g.pem",
        "x/.env",
    )
    assert walked(rules(tmp_path, include=("*.md",))) == {"a.md"}
    assert walked(rules(tmp_path, include=("**/*.md", "docs/"))) == {"a.md", "docs/c.txt", "docs/deep/d.txt"}
    assert walked(rules(tmp_path, include=("/docs/*.txt",))) == {"docs/c.txt"}
    assert walked(rules(tmp_path, include=("*", "!*.txt"))) == {"a.md"}
    assert walked(rules(tmp_path, include=("node_modules/m/**",))) == {"node_modules/m/e.md"}
    assert walked(rules(tmp_path, include=("*.tmp",))) == {"f.tmp"}
    assert walked(rules(tmp_path, include=("*", "*.pem", ".en*"))) == {"a.md", "b.txt", "docs/c.txt", "docs/deep/d.txt"}
    assert walked(rules(tmp_path, include=("x/.env", "/g.pem"))) == {"x/.env", "g.pem"}
    made = rules(tmp_path, include=("docs/*.txt",))
    assert code(made, "a.md") == "not_included"
    assert code(made, "x", is_folder=True) == "not_included"
    assert code(made, "docs", is_folder=True) is None


def test_include_prunes_folders_that_can_hold_nothing_wanted(tmp_path: Path) -> None:
    make(tmp_path, "docs/a/b.md", "other/a/b.md")
    walk = Walk(rules(tmp_path, include=("docs/**/*.md",)))
    assert [seen.path for seen in walk] == [b"docs/a/b.md"]
    assert walk.folders == [b"", b"docs", b"docs/a"]


def test_exclude_wins_over_include_and_can_have_exceptions(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "drafts/b.md", "drafts/c.md", "keep/drafts/d.md")
    made = rules(tmp_path, include=("*.md",), exclude=("/drafts/", "a.md"))
    assert walked(made) == {"keep/drafts/d.md"}
    decision = made.decide(b"drafts/b.md")
    assert decision == Decision("exclude", "/drafts/", "configuration, exclude", b"drafts")
    assert walked(rules(tmp_path, exclude=("*.md", "!c.md"))) == {"drafts/c.md"}


def test_ragdignore_works_without_git_and_is_stronger_than_gitignore(tmp_path: Path) -> None:
    make(tmp_path, "a.log", "b.log", "sub/c.md", "sub/d.md", "node_modules/e.md")
    (tmp_path / ".gitignore").write_text("*.log\n.*ignore\n")
    (tmp_path / ".ragdignore").write_text("!a.log\n!node_modules/\n")
    (tmp_path / "sub" / ".ragdignore").write_text("# mine\nd.md\n")
    made = rules(tmp_path)
    assert walked(made) == {"a.log", "sub/c.md"}
    decision = made.decide(b"sub/d.md")
    assert decision is not None
    assert (decision.code, decision.rule) == ("ragdignore", "d.md")
    assert decision.source == f"{tmp_path}/sub/.ragdignore:2"
    assert str(decision) == f"{tmp_path}/sub/.ragdignore:2: d.md"
    assert code(made, "b.log") == "gitignore"
    assert walked(rules(tmp_path, gitignore=False)) == {
        ".gitignore",
        ".ragdignore",
        "a.log",
        "b.log",
        "sub/.ragdignore",
        "sub/c.md",
    }


def test_inner_roots_and_own_files_are_not_looked_at_fault_c9(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "inner/b.md", "state/c.md", "ragd.log")
    outer, inner = arrange(
        [RootRules("outer", os.fsencode(tmp_path)), RootRules("inner", os.fsencode(tmp_path / "inner"))],
        kept_out=[os.fsencode(tmp_path / "state"), os.fsencode(tmp_path / "ragd.log")],
    )
    made = IgnoreRules(outer)
    assert walked(made) == {"a.md"}
    assert walked(IgnoreRules(inner)) == {"b.md"}
    assert code(made, "inner/b.md") == "outside_root"
    assert code(made, "state/c.md") == "builtin"


def test_law_walk_and_explanation_agree(tmp_path: Path) -> None:
    make(
        tmp_path,
        *("a.md", "b.tmp", ".env", "node_modules/c.md", "docs/d.md", "docs/e.txt", "docs/out/f.md", "env/pyvenv.cfg"),
        *("env/g.md", "drafts/h.md", "docs/deep/i.md", "docs/deep/j.log"),
    )
    (tmp_path / "docs" / ".gitignore").write_text("out/\n*.log\n")
    (tmp_path / "docs" / ".ragdignore").write_text("e.txt\n!j.log\n")
    made = rules(tmp_path, exclude=("drafts",), include=("*.md", "*.txt", "*.log"))
    explain = made.explainer()
    everything = {
        os.path.relpath(os.path.join(folder, name), tmp_path)
        for folder, _, names in os.walk(tmp_path)
        for name in names
    }
    assert {path for path in everything if explain(path.encode()) is None} == walked(made)
    assert walked(made) == {"a.md", "docs/d.md", "docs/deep/i.md", "docs/deep/j.log"}


def test_a_path_of_any_depth_is_judged(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    made = rules(tmp_path)
    assert code(made, "a/" * 1900 + "b.log", is_folder=False) == "gitignore"
    assert code(made, "a/" * 1900 + "b.md", is_folder=False) is None


def test_a_changed_ignore_file_counts_at_the_next_walk(tmp_path: Path) -> None:
    make(tmp_path, "a.md", "b.md")
    made = rules(tmp_path, include=("*.md",))
    (tmp_path / ".ragdignore").write_text("a.md\n")
    assert walked(made) == {"b.md"}
    (tmp_path / ".ragdignore").write_text("b.md\n")
    assert walked(made) == {"a.md"}
