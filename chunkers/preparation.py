"""Atoms of a region made ready for packing: none over the ceiling, and no glue that cannot hold.

What must stay true: a heading keeps company where any atom behind it may be divided, a fence or table row that fits
is never divided, and what is changed here depends on nothing but atoms glued to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragd.chunkers.document import GLUED, Atom
from ragd.chunkers.limits import Limits
from ragd.chunkers.splitting import Weigher, split_atom

_DIVISIBLE = frozenset(["paragraph", "list_item", "quote", "html"])
"""Kinds that are rather divided than parted from their heading."""
CHAIN_COST = 5.0
"""A cut between a bare heading and the next: dearer than anything but glue."""
_BROKEN_GLUE_COST = 0.3
_LEFT_BEHIND_COST = 1.0
"""Before a short lead-in whose list or fence is too large to be joined: it rather stays with what is before it."""
_SHORT_SHARE = 0.2


def prepare(
    atoms: Sequence[Atom], weights: Sequence[int], limits: Limits, weigher: Weigher
) -> tuple[list[Atom], list[int]]:
    """The atoms of one region and their tokens, divided where needed, with glue broken where it is too long."""
    ready: list[Atom] = []
    sizes: list[int] = []
    headings_weight = 0
    for atom, weight in zip(atoms, weights, strict=True):
        if atom.rendered is None and not weigher.text[atom.start : atom.end].strip():
            continue
        room = limits.ceiling_tokens - weigher.context_tokens(atom)
        if atom.kind in _DIVISIBLE and headings_weight <= room // 2:
            room -= headings_weight
        pieces = [(atom, weight)] if weight <= room else split_atom(atom, room, weigher)
        ready += [piece for piece, _ in pieces]
        sizes += [size for _, size in pieces]
        chained = headings_weight if atom.cost >= CHAIN_COST else 0
        headings_weight = 0 if atom.heading is None else chained + weight
    _break_long_glue(ready, sizes, limits)
    return ready, sizes


def _break_long_glue(atoms: list[Atom], sizes: Sequence[int], limits: Limits) -> None:
    """Where a chain of glued atoms is over the ceiling, break it so that as much as fits stays with its end."""
    first = 0
    for index in range(1, len(atoms) + 1):
        if index < len(atoms) and atoms[index].cost >= GLUED:
            continue
        last = index
        while last - first > 1 and sum(sizes[first:last]) > limits.ceiling_tokens:
            start, weight = last - 1, sizes[last - 1]
            while weight + sizes[start - 1] <= limits.ceiling_tokens:
                start -= 1
                weight += sizes[start]
            if atoms[start - 1].heading is None:
                atoms[start] = replace(atoms[start], cost=_BROKEN_GLUE_COST)
            last = start
        left = sum(sizes[first:last])
        if last < index and left < _SHORT_SHARE * limits.target_tokens and atoms[first].heading is None:
            atoms[first] = replace(atoms[first], cost=max(atoms[first].cost, _LEFT_BEHIND_COST))
        first = index
