"""The plan, from made-up stats and rows; and a law: what it says leads the catalog to what is on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragd.daemon import plan as plan_module
from ragd.daemon.files.ignore import Decision
from ragd.daemon.files.walk import Seen
from ragd.daemon.plan import Action, Plan, PlanInput, find_moves, is_trusted
from ragd.store.rows import PlanRow
from ragd.store.types import FileStat

NOW = 1_000_000_000_000
STAT = FileStat(size=10, mtime_ns=5, ctime_ns=6, inode=7, device=8)


def row(path: bytes, stat: FileStat = STAT, **given: Any) -> PlanRow:
    fields: dict[str, Any] = {
        "path": path,
        "size": stat.size,
        "mtime_ns": stat.mtime_ns,
        "ctime_ns": stat.ctime_ns,
        "inode": stat.inode,
        "device": stat.device,
        "trusted": True,
        "content_hash": b"hash of " + path,
        "state": "indexed",
        "reason": "",
        "recipe": "r1",
        "retry_at_ns": None,
        "stale": 0,
        "attempts": 0,
    } | given
    return PlanRow(**{name: fields[name] for name in PlanRow._fields})


def given_plan(seen: Iterable[Seen] = (), rows: Sequence[PlanRow] = (), **given: Any) -> Plan:
    inputs: dict[str, Any] = {
        "seen": seen,
        "rows": rows,
        "recipe_of": lambda _: "r1",
        "now_ns": NOW,
        "max_bytes": 100,
        "covers": lambda _: True,
        "why_ignored": lambda _: None,
        "root_is_healthy": lambda: True,
        "files_in_root": len(rows),
    } | given
    return Plan(PlanInput(**inputs))


def actions(seen: Iterable[Seen] = (), rows: Sequence[PlanRow] = (), **given: Any) -> list[Action]:
    return list(given_plan(seen, rows, **given))


def only(found: list[Action]) -> Action:
    (action,) = found
    return action


def test_nothing_changed_costs_nothing() -> None:
    plan = given_plan([Seen(b"a", STAT), Seen(b"b", STAT)], [row(b"a"), row(b"b")])
    assert list(plan) == []
    assert (plan.seen, plan.unchanged, plan.held, plan.protected) == (2, 2, [], 0)


def test_a_new_file_is_indexed() -> None:
    assert actions([Seen(b"a", STAT)]) == [Action("index", b"a", "new", STAT)]


@pytest.mark.parametrize("field", ["size", "mtime_ns", "ctime_ns", "inode"])
def test_any_difference_in_the_stat_is_read_and_may_be_a_touch(field: str) -> None:
    changed = STAT._replace(**{field: 99})
    action = only(actions([Seen(b"a", changed)], [row(b"a")]))
    assert (action.kind, action.reason, action.touch_if_hash) == ("index", "changed", b"hash of a")


def test_the_device_may_change_with_a_mount() -> None:
    assert actions([Seen(b"a", STAT._replace(device=99))], [row(b"a")]) == []


def test_an_untrusted_row_is_read_again() -> None:
    action = only(actions([Seen(b"a", STAT)], [row(b"a", trusted=False)]))
    assert (action.reason, action.touch_if_hash) == ("untrusted", b"hash of a")


def test_trust_needs_two_seconds_between_the_times_and_the_reading() -> None:
    second = 1_000_000_000
    stat = FileStat(1, mtime_ns=NOW - 10 * second, ctime_ns=NOW - 10 * second, inode=1, device=1)
    assert is_trusted(stat, NOW)
    assert not is_trusted(stat._replace(mtime_ns=NOW - second), NOW)
    assert not is_trusted(stat._replace(ctime_ns=NOW - second), NOW)
    assert not is_trusted(stat._replace(mtime_ns=NOW + second), NOW)
    assert is_trusted(stat._replace(mtime_ns=NOW + 3600 * second), NOW)


def test_another_recipe_cuts_again_whatever_the_hash() -> None:
    action = only(actions([Seen(b"a", STAT)], [row(b"a")], recipe_of=lambda _: "r2"))
    assert (action.kind, action.reason, action.touch_if_hash) == ("index", "recipe", None)
    changed = only(actions([Seen(b"a", STAT._replace(size=11))], [row(b"a")], recipe_of=lambda _: "r2"))
    assert (changed.reason, changed.touch_if_hash) == ("changed", None)


@pytest.mark.parametrize("state", ["failed", "skipped"])
def test_fault_f6_a_failure_rests_until_bytes_or_recipe_change_or_its_pause_is_over(state: str) -> None:
    seen = [Seen(b"a", STAT)]
    assert actions(seen, [row(b"a", state=state, reason="timeout")]) == []
    assert actions(seen, [row(b"a", state=state, reason="timeout", retry_at_ns=NOW + 1)]) == []
    assert actions(seen, [row(b"a", state=state, reason="unreadable", recipe="", content_hash=b"")]) == []
    assert only(actions(seen, [row(b"a", state=state, reason="timeout", retry_at_ns=NOW)])).reason == "retry"
    assert only(actions(seen, [row(b"a", state=state, reason="timeout")], recipe_of=lambda _: "r2")).reason == "recipe"
    changed = only(actions([Seen(b"a", STAT._replace(size=11))], [row(b"a", state=state, reason="timeout")]))
    assert (changed.reason, changed.touch_if_hash) == ("changed", b"hash of a")


def test_too_large_is_skipped_without_reading_and_only_once() -> None:
    large = STAT._replace(size=101)
    action = only(actions([Seen(b"a", large)]))
    assert (action.kind, action.reason, action.detail) == ("skip", "too_large", "101 bytes")
    assert only(actions([Seen(b"a", large)], [row(b"a", large)])).kind == "skip"
    skipped = row(b"a", large, state="skipped", reason="too_large", content_hash=b"", recipe="")
    assert actions([Seen(b"a", large)], [skipped]) == []
    assert only(actions([Seen(b"a", large)], [skipped], max_bytes=200)).reason == "limit"


def test_fault_b18_a_file_in_the_cloud_is_skipped_until_it_is_here() -> None:
    action = only(actions([Seen(b"a", STAT, local=False)]))
    assert (action.kind, action.reason, action.detail) == ("skip", "not_local", "10 bytes, in the cloud")
    skipped = row(b"a", state="skipped", reason="not_local", content_hash=b"", recipe="")
    assert actions([Seen(b"a", STAT, local=False)], [skipped]) == []
    assert only(actions([Seen(b"a", STAT)], [skipped])).kind == "index"


def test_fault_f2_an_absent_file_is_forgotten_after_the_adds() -> None:
    other = FileStat(99, 99, 99, 99, 99)
    found = actions([Seen(b"b", other)], [row(b"a")])
    assert found == [Action("index", b"b", "new", other), Action("forget", b"a", "absent")]


def test_fault_f5_what_could_not_be_looked_at_stays() -> None:
    plan = given_plan([], [row(b"a"), row(b"shut/b")], covers=lambda path: not path.startswith(b"shut"))
    assert [action.path for action in plan] == [b"a"]
    assert plan.protected == 1
    away = given_plan([], [row(b"a")], root_is_healthy=lambda: False)
    assert list(away) == []
    assert away.protected == 1


def test_the_root_is_asked_about_after_the_walk() -> None:
    order: list[str] = []

    def walk() -> Iterable[Seen]:
        yield Seen(b"b", STAT)
        order.append("walked")

    def healthy() -> bool:
        order.append("asked")
        return True

    actions(walk(), [row(b"a")], root_is_healthy=healthy)
    assert order == ["walked", "asked"]


def test_a_file_that_became_ignored_is_forgotten_with_the_rule_and_is_no_mass_deletion() -> None:
    rows = [row(b"%03d" % number) for number in range(40)]
    rule = Decision("gitignore", "*", ".gitignore:1")
    plan = given_plan([], rows, why_ignored=lambda _: rule, covers=lambda _: False)
    found = list(plan)
    assert {(action.kind, action.reason, action.detail) for action in found} == {
        ("forget", "gitignore", ".gitignore:1: *")
    }
    assert len(found) == 40
    assert plan.held == []


def mass(count: int, of: int, **given: Any) -> Plan:
    rows = [row(b"%04d" % number, STAT._replace(inode=number)) for number in range(of)]
    seen = [Seen(entry.path, STAT._replace(inode=entry.inode)) for entry in rows[count:]]
    return given_plan(seen, rows, **given)


def test_a_mass_deletion_without_a_trace_is_held() -> None:
    plan = mass(21, of=40)
    assert list(plan) == []
    assert len(plan.held) == 21
    assert "21 of 40 files" in plan.problem
    assert "ragd forget --confirm" in plan.problem


@pytest.mark.parametrize(("count", "of"), [(19, 19), (20, 40), (50, 200)])
def test_few_files_or_half_of_a_root_are_no_mass_deletion(count: int, of: int) -> None:
    plan = mass(count, of)
    assert len(list(plan)) == count
    assert (plan.held, plan.problem) == ([], "")


def test_watched_deletions_and_confirmed_ones_are_believed() -> None:
    assert len(list(mass(40, of=40, saw_deleted=lambda _: True))) == 40
    assert len(list(mass(40, of=40, confirmed=True))) == 40
    partly = mass(40, of=40, saw_deleted=lambda path: path < b"0010")
    assert [action.path for action in partly] == [b"%04d" % number for number in range(10)]
    assert len(partly.held) == 30


def test_half_of_a_replaced_root_is_held_however_few_files_it_has() -> None:
    assert len(list(mass(3, of=5))) == 3
    plan = mass(3, of=5, replaced=True)
    assert list(plan) == []
    assert len(plan.held) == 3
    assert len(list(mass(2, of=5, replaced=True))) == 2


def test_the_share_is_that_of_the_root_and_not_of_the_scope() -> None:
    rows = [row(b"d/%04d" % number) for number in range(30)]
    assert len(list(given_plan([], rows, files_in_root=1000))) == 30


def test_a_renamed_file_is_a_move_that_the_hash_must_confirm() -> None:
    renamed = STAT._replace(ctime_ns=999)
    action = only(actions([Seen(b"b", renamed)], [row(b"a")]))
    assert action == Action("move", b"b", "moved", renamed, touch_if_hash=b"hash of a", moved_from=b"a")


def test_moves_pair_one_to_one_by_inode_first() -> None:
    gone = [row(b"a", STAT._replace(inode=1)), row(b"b", STAT._replace(inode=2))]
    new = [Seen(b"x", STAT._replace(inode=2)), Seen(b"y", STAT._replace(inode=9)), Seen(b"z", STAT._replace(inode=8))]
    moves = find_moves(new, gone)
    assert {path: entry.path for path, entry in moves.items()} == {b"x": b"b", b"y": b"a"}
    assert find_moves([Seen(b"x", STAT._replace(size=11))], gone) == {}
    assert find_moves(new, [row(b"a", content_hash=b"")]) == {}


def test_a_renamed_folder_is_no_mass_deletion() -> None:
    rows = [row(b"old/%03d" % number, STAT._replace(inode=number)) for number in range(200)]
    seen = [Seen(b"new/%03d" % number, STAT._replace(inode=number, ctime_ns=77)) for number in range(200)]
    plan = given_plan(seen, rows)
    found = list(plan)
    assert {action.kind for action in found} == {"move"}
    assert len(found) == 200
    assert plan.held == []
    assert {(action.path[4:], (action.moved_from or b"")[4:]) for action in found} == {
        (entry.path[4:], entry.path[4:]) for entry in rows
    }


def test_with_many_new_files_the_first_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_module, "MOVE_WINDOW", 2)
    stats = [STAT._replace(inode=100 + number, mtime_ns=number) for number in range(5)]
    plan = iter(given_plan([Seen(b"b%d" % n, stat) for n, stat in enumerate(stats)], [row(b"a")]))
    assert [action.path for action in plan] == [b"b2", b"b3", b"b4", b"b0", b"b1", b"a"]


def test_a_first_walk_waits_for_nothing() -> None:
    def walk() -> Iterable[Seen]:
        yield Seen(b"a", STAT)
        raise AssertionError

    assert next(iter(given_plan(walk(), [], files_in_root=0))).path == b"a"


@pytest.mark.parametrize("names", [[b"b", b"a"], [b"a", b"a"]])
def test_lists_out_of_order_conclude_nothing(names: list[bytes]) -> None:
    with pytest.raises(ValueError, match="out of order"):
        actions([Seen(name, STAT) for name in names])
    with pytest.raises(ValueError, match="out of order"):
        actions([], [row(name) for name in names])


NAMES = st.sampled_from([b"a", b"a-b", b"a/b", b"b", b"b/c", b"d"])
STATS = st.builds(FileStat, *[st.integers(1, 3)] * 5)


@given(disk=st.dictionaries(NAMES, STATS), catalog=st.dictionaries(NAMES, STATS), shut=st.sets(NAMES))
def test_law_the_plan_leads_the_catalog_to_the_disk(
    disk: dict[bytes, FileStat], catalog: dict[bytes, FileStat], shut: set[bytes]
) -> None:
    plan = given_plan(
        [Seen(path, stat) for path, stat in sorted(disk.items()) if path not in shut],
        [row(path, stat) for path, stat in sorted(catalog.items())],
        covers=lambda path: path not in shut,
    )
    found = list(plan)
    after = dict(catalog)
    for action in found:
        if action.moved_from is not None:
            del after[action.moved_from]
        if action.kind == "forget":
            del after[action.path]
        else:
            assert action.stat is not None
            after[action.path] = action.stat
    expected = {path: stat for path, stat in disk.items() if path not in shut}
    expected |= {path: stat for path, stat in catalog.items() if path in shut}
    assert {path: (s.size, s.mtime_ns, s.ctime_ns, s.inode) for path, s in after.items()} == {
        path: (s.size, s.mtime_ns, s.ctime_ns, s.inode) for path, s in expected.items()
    }
    kinds = [action.kind == "forget" for action in found]
    assert kinds == sorted(kinds)
    assert len({action.path for action in found}) == len(found)
    assert plan.protected == len(set(catalog) & shut)
