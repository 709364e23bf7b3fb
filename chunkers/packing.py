"""The one engine that chooses the cuts: atoms of an outline to runs, one run a chunk.

Between content-defined anchors a dynamic program finds the cheapest way to cut (the optimal line breaking of Knuth
and Plass, 1981, with tokens for widths). What must stay true: no run crosses a region, none is heavier than the
ceiling unless it is a single atom, and the cuts depend on nothing but the atoms between two anchors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise

from ragd.chunkers.anchors import Key, anchors
from ragd.chunkers.decode import unified_newlines
from ragd.chunkers.document import GLUED, Atom, Outline, Region
from ragd.chunkers.limits import Limits
from ragd.chunkers.preparation import CHAIN_COST, prepare
from ragd.chunkers.splitting import Weigher
from ragd.chunkers.tokens import TokenCounter

VERSION = 1

_GLUE_COST = 50.0
"""A glued cut is made only where nothing else keeps the budget: dearer than all other costs of a segment."""
_FRAGMENT_SHARE, _FRAGMENT_COST = 0.2, 3.0
_SQUEEZE_COST = 0.3
"""The body fits, but only with a shortened prefix."""
_LOTTERY_COST = 0.1
"""Most that a boundary's own hash adds to its cost. Between equally good places the text itself decides, not the
distance from the last cut: so cuts fall back into step soon after an edit."""
_MOST_ATOMS_PER_TARGET = 32


@dataclass(slots=True)
class Run:
    """The atoms of one chunk."""

    atoms: list[Atom]
    weights: list[int]
    region: int
    segment: int
    """Number of the stretch between two anchors, over the whole document."""

    @property
    def body_tokens(self) -> int:
        return sum(self.weights)


def pack(
    outline: Outline, text: str, counter: TokenCounter, limits: Limits, lead_tokens: Callable[[Atom], int]
) -> list[Run]:
    """Cut every region of the outline. `lead_tokens(atom)` is what the prefix of a run takes that starts there."""
    weigher = Weigher(text, counter, limits.ceiling_tokens)
    every_weight = iter(weigher.weigh([atom for region in outline.regions for atom in region.atoms]))
    runs: list[Run] = []
    segment = 0
    for number, region in enumerate(outline.regions):
        aims = _aims_of(region, limits)
        region_weights = [next(every_weight) for _ in region.atoms]
        atoms, weights = prepare(region.atoms, region_weights, aims, weigher)
        keys = _keys(atoms, text)
        edges = [0, *anchors(keys, weights, aims.target_tokens), len(atoms)]
        region_runs: list[Run] = []
        for first, last in pairwise(edges):
            if first == last:
                continue
            groups = _coalesce(atoms, weights, first, last, aims.target_tokens)
            for low, high in _cheapest(atoms, weights, keys, groups, aims, lead_tokens, weigher):
                region_runs.append(Run(atoms[low:high], weights[low:high], number, segment))
            segment += 1
        runs += _without_fragments(region_runs, aims, lead_tokens, weigher)
    return runs


def _without_fragments(
    runs: Sequence[Run], limits: Limits, lead_tokens: Callable[[Atom], int], weigher: Weigher
) -> list[Run]:
    """Fragments that an anchor left over joined with the run before, else the one behind, where that fits."""
    least = _FRAGMENT_SHARE * limits.target_tokens
    kept: list[Run] = []
    for run in runs:
        before = kept[-1] if kept else None
        if before is not None and min(before.body_tokens, run.body_tokens) < least:
            first = before.atoms[0]
            room = limits.ceiling_tokens - max(lead_tokens(first), weigher.context_tokens(first))
            if before.body_tokens + run.body_tokens + weigher.gap_tokens <= room:
                kept[-1] = Run(before.atoms + run.atoms, before.weights + run.weights, before.region, before.segment)
                continue
        kept.append(run)
    return kept


def _aims_of(region: Region, limits: Limits) -> Limits:
    """The limits of a region, which may aim lower than the setting."""
    if region.target_tokens is None or region.target_tokens >= limits.target_tokens:
        return limits
    return replace(limits, target_tokens=max(1, region.target_tokens))


def _keys(atoms: Sequence[Atom], text: str) -> list[Key | None]:
    """For each boundary its rank and the hash of the atom behind it; None where it is glued."""
    keys: list[Key | None] = []
    for atom in atoms:
        if atom.cost >= CHAIN_COST:
            keys.append(None)
            continue
        content = unified_newlines(text[atom.start : atom.end]).encode()
        digest = blake2b(content, digest_size=8).digest()
        keys.append((round(atom.cost * 20), int.from_bytes(digest, "big")))
    return keys


def _coalesce(
    atoms: Sequence[Atom], weights: Sequence[int], first: int, last: int, target: int
) -> list[tuple[int, int]]:
    """Group atoms so that the dynamic program stays linear even for thousands of one-letter paragraphs."""
    total = sum(weights[first:last])
    if last - first <= _MOST_ATOMS_PER_TARGET * (1 + total / target):
        return [(index, index + 1) for index in range(first, last)]
    least = target / _MOST_ATOMS_PER_TARGET
    groups: list[tuple[int, int]] = []
    start, weight = first, 0
    for index in range(first, last):
        if index > start and weight >= least and atoms[index].cost < GLUED:
            groups.append((start, index))
            start, weight = index, 0
        weight += weights[index]
    groups.append((start, last))
    return groups


def _cheapest(
    atoms: Sequence[Atom],
    weights: Sequence[int],
    keys: Sequence[Key | None],
    groups: Sequence[tuple[int, int]],
    limits: Limits,
    lead_tokens: Callable[[Atom], int],
    weigher: Weigher,
) -> list[tuple[int, int]]:
    """Runs of groups with the least total cost, as ranges of atoms; among equals the earliest cuts."""
    count = len(groups)
    sizes = [sum(weights[low:high]) for low, high in groups]
    firsts = [atoms[low] for low, _ in groups]
    leads = [lead_tokens(atom) for atom in firsts]
    rooms = [limits.ceiling_tokens - weigher.context_tokens(atom) for atom in firsts]
    cut_costs = [0.0] + [_cut_cost(firsts[i], keys[groups[i][0]]) for i in range(1, count)]
    best = [0.0] * (count + 1)
    came_from = [0] * (count + 1)
    # best[i]: cost of the groups from i on; worked backwards, so that ties fall to the earliest cut
    for start in range(count - 1, -1, -1):
        lowest, chosen, body = float("inf"), start + 1, 0
        for stop in range(start + 1, count + 1):
            body += sizes[stop - 1]
            if stop > start + 1 and body + weigher.gap_tokens * (stop - start - 1) > rooms[start]:
                break
            cost = _size_cost(body, leads[start], limits) + best[stop]
            if stop < count:
                cost += cut_costs[stop]
            if cost < lowest:
                lowest, chosen = cost, stop
        best[start], came_from[start] = lowest, chosen
    runs: list[tuple[int, int]] = []
    start = 0
    while start < count:
        stop = came_from[start]
        runs.append((groups[start][0], groups[stop - 1][1]))
        start = stop
    return runs


def _cut_cost(atom: Atom, key: Key | None) -> float:
    if key is None:
        return min(atom.cost, _GLUE_COST)
    return atom.cost + _LOTTERY_COST * (key[1] / 2**64)


def _size_cost(body: int, lead: int, limits: Limits) -> float:
    """Squared distance from the target, steeper above it; fragments and squeezed prefixes cost extra."""
    target = limits.target_tokens
    distance = (body + lead - target) / target
    cost = distance * distance * (4.0 if distance > 0 else 1.0)
    if body < _FRAGMENT_SHARE * target:
        cost += _FRAGMENT_COST
    if body + lead > limits.ceiling_tokens:
        cost += _SQUEEZE_COST
    return cost
