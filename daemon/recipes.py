"""How each file of a root is cut today: its settings, and the fingerprint the plan compares.

What must stay true: what the plan expects and what the cut records is the same recipe, because both come from the
same settings; a name is looked at once, not once a walk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ragd.chunkers.parsers.extensions import NAMES
from ragd.chunkers.recipe import recipe_of
from ragd.chunkers.records import CutSettings, ModelBudget
from ragd.daemon.config import Config

_KEPT = 100_000
_WHOLE_NAMES = frozenset(name.encode() for name in NAMES)


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """What a recipe depends on besides the settings."""

    fingerprint: str
    budget: ModelBudget


class Recipes:
    """Settings and recipes of every root. Thread-safe: the caches only ever gain entries."""

    def __init__(self, config: Config, tokenizer: Tokenizer) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._roots = {root.name: root for root in config.roots}
        self._known: dict[tuple[str, bytes], str] = {}

    def settings(self, root: str, path: bytes) -> CutSettings:
        """The `[chunking]` keys in force for a file."""
        return self._config.cut_settings(self._roots.get(root), path)

    def of_root(self, root: str) -> Callable[[bytes], str]:
        """The recipe of any path of that root. Where no rule names paths, the end of the name decides, or the whole
        name where that says more (CMakeLists.txt)."""
        by_path = bool(self._roots[root].rules) if root in self._roots else False

        def recipe(path: bytes) -> str:
            name = path[path.rfind(b"/") + 1 :].lower()
            dot = name.rfind(b".")
            by_name = dot < 0 or name in _WHOLE_NAMES or name.startswith(b"dockerfile")
            key = (root, path if by_path else name if by_name else name[dot:])
            known = self._known.get(key)
            if known is None:
                if len(self._known) >= _KEPT:
                    self._known.clear()
                known = self._known[key] = recipe_of(
                    path, self.settings(root, path), self._tokenizer.fingerprint, self._tokenizer.budget
                )
            return known

        return recipe
