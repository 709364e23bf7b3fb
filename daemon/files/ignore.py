"""Which paths of a root are looked at: one decision, for the walk, for the watcher and for `ragd why`.

What must stay true: the three give the same answer, because all of them go down the folders through `Level`.

In the order they are asked, the first that speaks decides:

1. another root's folder, and ragd's own files (outside_root, builtin)
2. names of secrets (secret_name), unless an `include` pattern ends in exactly that name, written without
   wildcards
3. `exclude` of the configuration (exclude)
4. the built-in list (builtin), unless an `include` pattern names it: a folder by its name as a part of the
   pattern (`node_modules/mine/**`), a file by its extension or its whole name (`*.tmp`). `include =
   ["**/*.md"]` says which files are wanted and does not bring node_modules back
5. `.ragdignore`, nested, from the root down (ragdignore); its `!pattern` overrules a .gitignore, nothing else
6. `.gitignore` as git does it, from the top of the repository down, with .git/info/exclude (gitignore). In a
   folder that is in no repository, from the root down. The user's global core.excludesFile is not consulted:
   what is indexed then depends on the folder alone. A repository inside another one has only its own rules
7. where there are `include` patterns, a file that none of them matches (not_included)

An ignored folder is not entered, so nothing under it can be taken back.
"""

from __future__ import annotations

import os
import stat as stat_bits
import sys
from collections.abc import Collection
from dataclasses import dataclass

from ragd.daemon.files import builtin_rules, paths, repository
from ragd.daemon.files.gitignore import Pattern, PatternFile, parse_file, split_lines
from ragd.daemon.files.include import Include
from ragd.daemon.files.roots import RootRules

IGNORE_CASE = sys.platform in ("darwin", "win32")

RULE_FILES = frozenset({b".gitignore", b".ragdignore", b".git"}) | builtin_rules.MARKER_NAMES
"""When one of these changes, its whole folder is looked at again."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Why a path is ignored: a reason code, the rule, and where the rule is written (`file:line`, or a
    place)."""

    code: str
    rule: str
    source: str
    path: bytes = b""
    """The path in the root that the rule matched: the path asked for, or a folder above it."""

    def __str__(self) -> str:
        return f"{self.source}: {self.rule}"


Chain = tuple[tuple[PatternFile, bytes], ...]
"""Pattern files from the nearest to the farthest, each with the path from its folder to the level's, ending
in "/"."""


class IgnoreRules:
    """The rules of one root. Holds no state of the disk: every `top()` reads it afresh. Thread-safe."""

    def __init__(self, root: RootRules, *, builtin: bool = True) -> None:
        self.root = root
        self.builtin = builtin
        self.include = Include(root.include)
        self.exclude = _config_patterns(root.exclude)
        self.foreign = {
            **{path: Decision("outside_root", "another root begins here", "configuration") for path in root.inner},
            **{path: Decision("builtin", "a file of ragd itself", "built in") for path in root.kept_out},
        }

        self.has_own = bool(self.include or self.exclude or self.foreign)
        """Whether the configuration says anything about paths of this root."""

    def top(self) -> Level:
        """The level of the root's own folder. Call `load` on it (with the names found there) before
        asking."""
        git, ignored_by = self._above() if self.root.gitignore else ((), None)
        return Level(self, b"", self.root.path, git=git, whole=ignored_by)

    def decide(self, path: bytes, *, is_folder: bool | None = None) -> Decision | None:
        """Why a path in the root is ignored, or None. Reads the ignore files above it; None for `is_folder`
        looks at the disk (a path that is not there counts as a file)."""
        return self.explainer()(path, is_folder=is_folder)

    def explainer(self) -> Explainer:
        """`decide` for many paths: every folder's ignore files are read once."""
        return Explainer(self)

    def _above(self) -> tuple[Chain, Decision | None]:
        """What applies in the root from the folders above it, up to the repository's top."""
        real = os.path.realpath(self.root.path)
        top = repository.find_top(real)
        if top is None or top == real:
            return (), None  # a repository that begins at the root is found by `load`
        chain = _exclude_chain(top)
        below = paths.relative(real, top) or b""
        folder = top
        for name in below.split(b"/"):
            own = _pattern_file(os.path.join(folder, b".gitignore"))
            chain = (((own, b""), *chain)) if own else chain
            found = _last_match(chain, name, is_folder=True)
            if found is not None and not found[0].negated:
                return chain, _file_decision("gitignore", found, b"")
            chain = _one_deeper(chain, name)
            folder = os.path.join(folder, name)
        return chain, None


class Explainer:
    """Answers for single paths, with the levels it went through kept."""

    def __init__(self, rules: IgnoreRules) -> None:
        self._rules = rules
        self._levels: dict[bytes, Level | Decision] = {}

    def __call__(self, path: bytes, *, is_folder: bool | None = None) -> Decision | None:
        if is_folder is None:
            is_folder = _is_folder(paths.join(self._rules.root.path, path))
        level = self._level(path if is_folder else paths.parent(path))
        if isinstance(level, Decision):
            return level
        return None if is_folder else level.decide(paths.name_of(path), is_folder=False)

    def _level(self, folder: bytes) -> Level | Decision:
        """The loaded level of a folder, or why it is ignored."""
        below: list[bytes] = []
        known = self._levels.get(folder)
        while known is None and folder:
            below.append(paths.name_of(folder))
            folder = paths.parent(folder)
            known = self._levels.get(folder)
        if known is None:
            known = self._loaded(b"", self._rules.top())
        for name in reversed(below):
            folder = paths.join(folder, name)
            known = self._loaded(folder, known.enter(name)) if isinstance(known, Level) else known
        return known

    def _loaded(self, folder: bytes, level: Level | Decision) -> Level | Decision:
        if isinstance(level, Level):
            level = level.load() or level
        self._levels[folder] = level
        return level


class Level:
    """The rules in force inside one folder. Immutable after `load`."""

    __slots__ = ("_git", "_included", "_plain", "_ragd", "_rules", "_whole", "folder", "name", "path", "prefix")

    def __init__(
        self,
        rules: IgnoreRules,
        path: bytes,
        folder: bytes,
        *,
        git: Chain = (),
        ragd: Chain = (),
        included: bool = False,
        whole: Decision | None = None,
    ) -> None:
        self._rules = rules
        self.path = path
        """The folder's path in the root."""
        self.folder = folder
        """Its absolute path."""
        self.name = paths.name_of(path)
        self.prefix = path + b"/" if path else b""
        self._git = git
        self._ragd = ragd
        self._included = included
        self._whole = whole
        self._plain = False

    def load(self, names: Collection[bytes] | None = None) -> Decision | None:
        """Read the ignore files in the folder. Returns why the whole folder is ignored by what lies in it, or
        None.

        `names` are those found in the folder by a walk; without them each file is looked for.
        """
        rules = self._rules
        if self._whole is not None:
            return self._whole
        if rules.builtin and self.path:
            marker = builtin_rules.marker_rule(self._present(names), self._first_bytes)
            if marker is not None and not rules.include.names_folder(self.name):
                return Decision(*marker, "built in", self.path)
        if rules.root.gitignore:
            if (names is None or b".git" in names) and repository.git_folder(self.folder) is not None:
                self._git = _exclude_chain(self.folder)
            self._git = self._with_own(b".gitignore", names, self._git)
        self._ragd = self._with_own(b".ragdignore", names, self._ragd)
        self._plain = not (self._git or self._ragd or rules.has_own)
        return None

    def decide(self, name: bytes, *, is_folder: bool) -> Decision | None:
        """Why an entry of this folder is ignored, or None. Nothing is read: `enter` and `load` tell of markers."""
        rules = self._rules
        named = None
        if rules.builtin:
            named = builtin_rules.folder_rule(name) if is_folder else builtin_rules.file_rule(name, self.name)
        if named is None and self._plain:
            return None
        if rules.has_own:
            reason = self._ask_configuration(name, named, is_folder=is_folder)
            if reason is not None:
                return reason
            if named is not None and not rules.include.takes_back(name, self.prefix, named[0], is_folder=is_folder):
                return Decision(*named, "built in", self.prefix + name)
        elif named is not None:
            return Decision(*named, "built in", self.prefix + name)
        if self._git or self._ragd:
            reason = self._ask_files(name, is_folder=is_folder)
            if reason is not None:
                return reason
        return self._ask_include(name, is_folder=is_folder) if rules.include else None

    def enter(self, name: bytes) -> Level | Decision:
        """The level of a folder in this one (then `load` it), or why it is ignored."""
        reason = self.decide(name, is_folder=True)
        if reason is not None:
            return reason
        include = self._rules.include
        return Level(
            self._rules,
            self.prefix + name,
            self.folder + b"/" + name,
            git=_one_deeper(self._git, name) if self._git else (),
            ragd=_one_deeper(self._ragd, name) if self._ragd else (),
            included=bool(include) and include.matches(name, self.prefix, self._included, is_folder=True),
        )

    def _ask_configuration(self, name: bytes, named: builtin_rules.Rule | None, *, is_folder: bool) -> Decision | None:
        """Other roots, secrets, `exclude`: what no file and no `include` pattern but an exact one overrules."""
        rules = self._rules
        path = self.prefix + name
        foreign = rules.foreign.get(path)
        if foreign is not None:
            return Decision(foreign.code, foreign.rule, foreign.source, path)
        is_secret = named is not None and named[0] == "secret_name"
        if is_secret and not rules.include.takes_back(name, self.prefix, "secret_name", is_folder=is_folder):
            return Decision("secret_name", named[1] if named else "", "built in", path)
        excluded = rules.exclude.match(name, self.prefix, is_folder=is_folder) if rules.exclude else None
        if excluded is not None and not excluded.negated:
            return Decision("exclude", paths.show(excluded.text), "configuration, exclude", path)
        return None

    def _ask_files(self, name: bytes, *, is_folder: bool) -> Decision | None:
        if self._ragd:
            own = _last_match(self._ragd, name, is_folder=is_folder)
            if own is not None:
                return None if own[0].negated else _file_decision("ragdignore", own, self.prefix + name)
        for file, prefix in self._git:
            pattern = file.match(name, prefix, is_folder=is_folder)
            if pattern is not None:
                return None if pattern.negated else _file_decision("gitignore", (pattern, file), self.prefix + name)
        return None

    def _ask_include(self, name: bytes, *, is_folder: bool) -> Decision | None:
        include = self._rules.include
        path = self.prefix + name
        if is_folder:
            wanted = self._included or include.may_hold(path)
        else:
            wanted = include.matches(name, self.prefix, self._included, is_folder=False)
        return None if wanted else Decision("not_included", include.text, "configuration, include", path)

    def _with_own(self, file_name: bytes, names: Collection[bytes] | None, chain: Chain) -> Chain:
        if names is not None and file_name not in names:
            return chain
        own = _pattern_file(self.folder + b"/" + file_name)
        return chain if own is None else ((own, b""), *chain)

    def _present(self, names: Collection[bytes] | None) -> Collection[bytes]:
        if names is not None:
            return names
        wanted = (*builtin_rules.MARKER_NAMES, b"Entries", b"Repository", b"Root")
        return [name for name in wanted if os.path.lexists(self.folder + b"/" + name)]

    def _first_bytes(self, name: bytes) -> bytes:
        return (repository.read_small(self.folder + b"/" + name) or b"")[:64]


def _pattern_file(place: bytes) -> PatternFile | None:
    content = repository.read_small(place)
    return parse_file(content, place, ignore_case=IGNORE_CASE) if content else None


def _exclude_chain(top: bytes) -> Chain:
    git = repository.git_folder(top)
    own = _pattern_file(repository.exclude_file(git)) if git is not None else None
    return () if own is None else ((own, b""),)


def _one_deeper(chain: Chain, name: bytes) -> Chain:
    return tuple((file, prefix + name + b"/") for file, prefix in chain)


def _last_match(chain: Chain, name: bytes, *, is_folder: bool) -> tuple[Pattern, PatternFile] | None:
    for file, prefix in chain:
        pattern = file.match(name, prefix, is_folder=is_folder)
        if pattern is not None:
            return pattern, file
    return None


def _file_decision(code: str, found: tuple[Pattern, PatternFile], path: bytes) -> Decision:
    pattern, file = found
    return Decision(code, paths.show(pattern.text), f"{paths.show(file.source)}:{pattern.line}", path)


def _config_patterns(patterns: Collection[str]) -> PatternFile | None:
    lines = [line for pattern in patterns for line in split_lines(os.fsencode(pattern))]
    made = PatternFile([(number, text) for number, (_, text) in enumerate(lines, 1)], b"configuration")
    return made if made.patterns else None


def _is_folder(path: bytes) -> bool:
    try:
        return stat_bits.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
