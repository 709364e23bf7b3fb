"""The watcher on real folders (faults C1, C2, C3, C5, C7, C9, C12). Nothing sleeps: everything polls to a deadline."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from watchdog.observers.inotify_c import InotifyConstants, InotifyEvent, Mask, WatchDescriptor

from ragd.daemon.files.hints import Hint
from ragd.daemon.files.ignore import IgnoreRules
from ragd.daemon.files.inotify_tree import InotifyGroup, WatchedTree
from ragd.daemon.files.observer import ObserverGroup
from ragd.daemon.files.paths import ancestors
from ragd.daemon.files.roots import RootRules, arrange
from ragd.daemon.files.walk import Walk
from ragd.daemon.files.watcher import Watcher, WatchSettings

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify")


class Hints:
    """Where hints are put; asks until a deadline."""

    def __init__(self) -> None:
        self.all: list[Hint] = []
        self._changed = threading.Condition()

    def __call__(self, hint: Hint) -> None:
        with self._changed:
            self.all.append(hint)
            self._changed.notify_all()

    def paths(self) -> set[bytes]:
        return {hint.path for hint in list(self.all)}

    def until(self, test: Callable[[], bool], seconds: float = 10) -> None:
        with self._changed:
            assert self._changed.wait_for(test, seconds), f"not seen; hints: {self.all}"

    def until_seen(self, *wanted: bytes) -> None:
        self.until(lambda: set(wanted) <= self.paths())

    def clear(self) -> None:
        with self._changed:
            self.all.clear()


class Scene:
    """A root with a watcher on it."""

    def __init__(self, folder: Path, **rules: object) -> None:
        self.top = folder / "root"
        self.top.mkdir(exist_ok=True)
        self.hints = Hints()
        root = arrange([RootRules("r", os.fsencode(self.top), **rules)])[0]  # type: ignore[arg-type]
        self.rules = IgnoreRules(root)
        self.watcher = Watcher([self.rules], self.hints)

    def start(self) -> Scene:
        self.watcher.start()
        return self

    @property
    def tree(self) -> WatchedTree:
        tree = self.watcher._trees["r"]
        assert isinstance(tree, WatchedTree)
        return tree

    def watched(self) -> set[bytes]:
        return set(self.tree._watches)

    def quiet(self) -> None:
        """Until everything that was done so far has been reported: a mark is made and waited for."""
        mark = f"mark{time.monotonic_ns()}"
        (self.top / mark).touch()
        self.hints.until_seen(mark.encode())

    def walk(self) -> set[bytes]:
        return {seen.path for seen in Walk(self.rules)}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.watcher.stop()


def eventually(test: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not test():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_fault_c1_save_by_rename_names_the_file_and_not_the_temporary_one(scene: Scene, tmp_path: Path) -> None:
    (scene.top / "a.md").write_text("old")
    scene.start()
    (scene.top / ".a.md.tmp").write_text("new")
    (scene.top / ".a.md.tmp").replace(scene.top / "a.md")
    scene.hints.until_seen(b"a.md")
    scene.quiet()
    assert b".a.md.tmp" not in scene.hints.paths()

    scene.hints.clear()
    (tmp_path / "outside").write_text("newer")
    (tmp_path / "outside").replace(scene.top / "a.md")
    scene.hints.until_seen(b"a.md")

    scene.hints.clear()
    (scene.top / "a.md").rename(scene.top / "a.md~")
    (scene.top / "a.md").write_text("newest")
    (scene.top / "a.md~").unlink()
    scene.quiet()
    assert b"a.md" in scene.hints.paths()
    assert b"a.md~" not in scene.hints.paths()


def test_reading_and_listing_gives_no_hint_fault_c9(scene: Scene) -> None:
    (scene.top / "sub").mkdir()
    (scene.top / "sub" / "a.md").write_text("text")
    scene.start()
    for _ in range(20):
        (scene.top / "sub" / "a.md").read_bytes()
        list(os.scandir(scene.top / "sub"))
    scene.quiet()
    assert {path for path in scene.hints.paths() if not path.startswith(b"mark")} == set()


def test_new_folders_are_watched_and_handed_out_to_be_walked(scene: Scene) -> None:
    scene.start()
    for number in range(50):
        folder = scene.top / f"n{number}" / "b" / "c"
        folder.mkdir(parents=True)
        (folder / "a.md").write_text("x")
    scene.hints.until_seen(*(b"n%d" % number for number in range(50)))
    scene.quiet()
    assert {b"n%d/b/c" % number for number in range(50)} <= scene.watched()
    scene.hints.clear()
    (scene.top / "n7" / "b" / "c" / "later.md").write_text("y")
    scene.hints.until_seen(b"n7/b/c/later.md")


def test_fault_c5_a_folder_moved_out_gives_one_hint_and_leaves_no_ghosts(scene: Scene, tmp_path: Path) -> None:
    (scene.top / "D" / "E").mkdir(parents=True)
    (scene.top / "D" / "E" / "a.md").write_text("x")
    scene.start()
    assert scene.watched() == {b"", b"D", b"D/E"}
    (scene.top / "D").rename(tmp_path / "away")
    scene.hints.until_seen(b"D")
    scene.quiet()
    assert Hint("r", b"D", deleted=True, folder=True) in scene.hints.all
    assert scene.watched() == {b""}
    scene.hints.clear()
    (tmp_path / "away" / "E" / "a.md").write_text("y")
    (tmp_path / "away" / "ghost.md").write_text("y")
    scene.quiet()
    assert not any(path.startswith(b"D") for path in scene.hints.paths())

    (tmp_path / "away").rename(scene.top / "back")
    scene.hints.until_seen(b"back")
    scene.quiet()
    assert scene.watched() == {b"", b"back", b"back/E"}
    (scene.top / "back" / "E" / "b.md").write_text("y")
    scene.hints.until_seen(b"back/E/b.md")


def test_a_folder_renamed_inside_is_watched_under_its_new_path(scene: Scene) -> None:
    (scene.top / "D" / "E").mkdir(parents=True)
    scene.start()
    (scene.top / "D").rename(scene.top / "F")
    scene.hints.until_seen(b"D", b"F")
    scene.quiet()
    assert scene.watched() == {b"", b"F", b"F/E"}
    scene.hints.clear()
    (scene.top / "F" / "E" / "a.md").write_text("x")
    scene.hints.until_seen(b"F/E/a.md")
    assert not any(path.startswith(b"D") for path in scene.hints.paths())


def test_a_folder_renamed_onto_an_empty_one_is_watched(scene: Scene) -> None:
    (scene.top / "D" / "E").mkdir(parents=True)
    (scene.top / "F").mkdir()
    scene.start()
    (scene.top / "D").rename(scene.top / "F")
    scene.quiet()
    eventually(lambda: scene.watched() == {b"", b"F", b"F/E"})
    (scene.top / "F" / "a.md").write_text("x")
    scene.hints.until_seen(b"F/a.md")


def test_a_folder_renamed_into_an_ignored_name_loses_its_watches(scene: Scene) -> None:
    (scene.top / "D" / "E").mkdir(parents=True)
    scene.start()
    (scene.top / "D").rename(scene.top / "node_modules")
    scene.quiet()
    assert scene.watched() == {b""}
    (scene.top / "node_modules").rename(scene.top / "D")
    scene.quiet()
    assert scene.watched() == {b"", b"D", b"D/E"}


def test_a_removed_tree_leaves_no_watches_and_gives_evidence(scene: Scene) -> None:
    (scene.top / "D" / "E").mkdir(parents=True)
    for number in range(5):
        (scene.top / "D" / "E" / f"{number}.md").touch()
    scene.start()
    shutil.rmtree(scene.top / "D")
    scene.hints.until(lambda: Hint("r", b"D", deleted=True, folder=True) in scene.hints.all)
    scene.quiet()
    assert Hint("r", b"D/E/3.md", deleted=True) in scene.hints.all
    assert scene.watched() == {b""}
    assert scene.watcher.watch_count == 1


def test_ignored_folders_and_files_are_neither_watched_nor_reported(scene: Scene) -> None:
    (scene.top / "node_modules" / "deep").mkdir(parents=True)
    (scene.top / "out").mkdir()
    (scene.top / ".gitignore").write_text("out/\n*.log\n")
    scene.start()
    assert scene.watched() == {b""}
    (scene.top / "out" / "a.md").touch()
    (scene.top / "app.log").write_text("x")
    scene.quiet()
    assert not {b"out/a.md", b"app.log"} & scene.hints.paths()


def test_a_changed_ignore_file_renews_the_watches_below_and_has_the_folder_walked(scene: Scene) -> None:
    (scene.top / "sub" / "out" / "deep").mkdir(parents=True)
    scene.start()
    assert b"sub/out/deep" in scene.watched()
    (scene.top / "sub" / ".ragdignore").write_text("out/\n")
    scene.hints.until(lambda: Hint("r", b"sub", folder=True) in scene.hints.all)
    eventually(lambda: scene.watched() == {b"", b"sub"})
    scene.hints.clear()
    (scene.top / "sub" / ".ragdignore").unlink()
    scene.hints.until(lambda: Hint("r", b"sub", folder=True) in scene.hints.all)
    eventually(lambda: scene.watched() == {b"", b"sub", b"sub/out", b"sub/out/deep"})


def test_a_virtual_environment_is_left_out_once_it_shows_itself(scene: Scene) -> None:
    scene.start()
    (scene.top / "env" / "lib").mkdir(parents=True)
    scene.hints.until_seen(b"env")
    eventually(lambda: b"env/lib" in scene.watched())
    (scene.top / "env" / "pyvenv.cfg").write_text("home = /usr/bin\n")
    eventually(lambda: scene.watched() == {b""})


@pytest.mark.parametrize("seed", range(6))
def test_law_after_any_changes_the_watched_folders_are_those_of_a_walk(scene: Scene, tmp_path: Path, seed: int) -> None:
    """Folders made, moved about, in, out, onto each other and removed at random; and every file is hinted at."""
    random = Random(seed)
    away = tmp_path / "away"
    away.mkdir()
    scene.start()
    names = ["a", "b", "c", "node_modules"]

    def place(top: Path) -> Path:
        return top.joinpath(*random.choices(names, k=random.randint(1, 3)))

    for step in range(400):
        one, other = place(random.choice([scene.top, away])), place(random.choice([scene.top, away]))
        with suppress(OSError):  # many of these are impossible, which is no matter
            match random.randrange(5):
                case 0:
                    one.mkdir(parents=True)
                case 1 | 2:
                    one.rename(other)
                case 3:
                    shutil.rmtree(one)
                case 4:
                    (one / f"{step}.md").touch()
    scene.quiet()
    walk = Walk(scene.rules)
    files = {seen.path for seen in walk}
    eventually(lambda: scene.watched() == set(walk.folders), 5)
    covered = {hint.path for hint in scene.hints.all if not hint.deleted}
    for path in files:
        assert path in covered or any(folder in covered for folder in ancestors(path) if folder), path


def test_fault_c2_overflow_keeps_the_watches_and_has_the_root_walked(scene: Scene) -> None:
    (scene.top / "known").mkdir()
    scene.start()
    reader = scene.watcher._group
    assert isinstance(reader, InotifyGroup)
    # what a full queue hides: a folder that came, one that was renamed, one that went
    scene.tree._lock.acquire()
    try:
        before = scene.watcher.watch_count
        reader.handle_event(InotifyEvent(WatchDescriptor(-1), Mask(InotifyConstants.IN_Q_OVERFLOW), 0, b""))
        assert scene.watcher.watch_count == before
    finally:
        scene.tree._lock.release()
    assert Hint("r", b"", folder=True) in scene.hints.all
    assert scene.watcher.rescan_reason("r") == "overflow"


def test_fault_c2_what_an_overflow_hid_is_watched_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stays", "moves", "goes"):
        (scene.top / name / "deep").mkdir(parents=True)
    scene.start()
    tree = scene.tree
    with tree._lock:  # the events of these are thrown away, as by a full queue
        monkeypatch.setattr(tree, "on_event", lambda _: None)
    (scene.top / "new" / "deep").mkdir(parents=True)
    (scene.top / "moves").rename(scene.top / "moved")
    shutil.rmtree(scene.top / "goes")
    eventually(lambda: b"goes" not in tree._watches)
    with tree._lock:
        monkeypatch.undo()
        tree.on_queue_overflow()
    expected = {b"", b"stays", b"stays/deep", b"moved", b"moved/deep", b"new", b"new/deep"}
    eventually(lambda: scene.watched() == expected)
    scene.hints.until_seen(b"", b"new", b"moved")
    scene.hints.clear()
    (scene.top / "moved" / "deep" / "a.md").touch()
    scene.hints.until_seen(b"moved/deep/a.md")


def test_fault_c2_a_real_overflow_is_noticed_and_loses_no_file(scene: Scene) -> None:
    """The kernel's own queue is filled while the reader is held back."""
    size = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    if size > 50_000:
        pytest.skip("the queue of this system is too long to fill quickly")
    scene.start()
    with scene.tree._lock, (scene.top / "a.md").open("wb", 0) as one, (scene.top / "b.md").open("wb", 0) as other:
        for _ in range(size // 2 + 3000):  # by turns, for an event equal to the one before is not queued
            one.write(b"x")
            other.write(b"x")
        for number in range(20):
            (scene.top / f"d{number}").mkdir()
            (scene.top / f"d{number}" / "hidden.md").touch()
    scene.hints.until(lambda: Hint("r", b"", folder=True) in scene.hints.all, 30)
    assert scene.watcher.rescan_reason("r") == "overflow"
    assert len(scene.walk()) == 22
    eventually(lambda: {b"d0", b"d19"} <= scene.watched(), 30)
    scene.hints.clear()
    (scene.top / "d19" / "after.md").touch()
    scene.hints.until_seen(b"d19/after.md")


def test_fault_c3_a_spent_watch_limit_is_said_and_the_rest_is_polled(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        (scene.top / f"d{number}" / "deep").mkdir(parents=True)
    real = InotifyGroup.watch
    left = [4]

    def limited(reader: InotifyGroup, path: bytes, mask: Mask, tree: WatchedTree) -> WatchDescriptor:
        if not left[0]:
            raise OSError(errno.ENOSPC, "inotify watch limit reached")
        left[0] -= 1
        return real(reader, path, mask, tree)

    monkeypatch.setattr(InotifyGroup, "watch", limited)
    scene.start()
    assert scene.watched() == {b"", b"d0", b"d1", b"d2"}  # shallow folders first
    (problem,) = scene.watcher.problems()
    assert "fs.inotify.max_user_watches" in problem
    assert scene.watcher.mode("r") == "native"
    polled = {hint.path for hint in scene.watcher.to_poll()}
    assert polled == {b"d%d" % number for number in range(3, 10)} | {b"d%d/deep" % number for number in range(3)}
    monkeypatch.setattr(InotifyGroup, "watch", real)
    assert scene.watcher.health()
    assert scene.watcher.problems() == []
    assert len(scene.watched()) == 21
    assert b"d9" in scene.hints.paths()


def test_fault_c3_no_inotify_instance_means_polling_and_a_problem(scene: Scene) -> None:
    def refused() -> InotifyGroup:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    watcher = Watcher([scene.rules], scene.hints, open_group=refused)
    watcher.start()
    (problem,) = watcher.problems()
    assert "fs.inotify.max_user_instances" in problem
    assert watcher.mode("r") == "polling"
    assert watcher.to_poll() == [Hint("r", b"", folder=True)]
    assert not watcher.health()
    watcher.stop()
    never = Watcher([scene.rules], scene.hints, WatchSettings("never"), open_group=refused)
    never.start()
    assert (never.mode("r"), never.to_poll()) == ("off", [])


def test_a_refused_permission_is_no_bogus_watch(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    (scene.top / "closed").mkdir()
    (scene.top / "open").mkdir()
    import ctypes

    from watchdog.observers import inotify_c

    real = inotify_c.inotify_add_watch

    def refusing(descriptor: int, path: bytes, mask: int) -> int:
        if path.endswith(b"closed"):
            ctypes.set_errno(errno.EACCES)
            return -1
        return real(descriptor, path, mask)

    monkeypatch.setattr(inotify_c, "inotify_add_watch", refusing)
    scene.start()
    assert scene.watched() == {b"", b"open"}
    monkeypatch.undo()
    (scene.top / "closed").chmod(0o755)
    scene.hints.until_seen(b"closed")
    assert b"closed" in scene.watched()


def test_fault_c7_an_exception_costs_a_walk_and_not_the_thread(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.start()
    real = WatchedTree.on_event

    def broken(tree: WatchedTree, event: InotifyEvent) -> None:
        if event.name == b"bad.md":
            raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "made up")
        real(tree, event)

    monkeypatch.setattr(WatchedTree, "on_event", broken)
    (scene.top / "bad.md").touch()
    scene.hints.until_seen(b"")
    assert "UnicodeDecodeError" in scene.watcher.rescan_reason("r")
    (scene.top / "good.md").touch()
    scene.hints.until_seen(b"good.md")
    assert scene.watcher.health()


def test_a_reader_that_ended_is_replaced_by_health(scene: Scene) -> None:
    scene.start()
    group = scene.watcher._group
    assert group is not None
    group.stop()
    assert not group.is_alive()
    assert scene.watcher.health()
    assert Hint("r", b"", folder=True) in scene.hints.all
    (scene.top / "a.md").touch()
    scene.hints.until_seen(b"a.md")


def test_root_renamed_away_and_back_is_noticed(scene: Scene, tmp_path: Path) -> None:
    (scene.top / "sub").mkdir()
    scene.start()
    assert scene.watcher.mode("r") == "native"
    scene.top.rename(tmp_path / "away")
    scene.hints.until_seen(b"")
    assert not scene.watcher.health()
    assert scene.watcher.mode("r") == "off"
    assert scene.watcher.watch_count == 0
    scene.hints.clear()
    (tmp_path / "away" / "sub" / "ghost.md").touch()
    (tmp_path / "away").rename(scene.top)
    assert scene.watcher.health()
    assert scene.hints.all == [Hint("r", b"", folder=True)]
    assert scene.watcher.rescan_reason("r") == "root came back"
    (scene.top / "sub" / "a.md").touch()
    scene.hints.until_seen(b"sub/a.md")


def test_root_deleted_and_made_again_is_watched_again(scene: Scene) -> None:
    scene.start()
    shutil.rmtree(scene.top)
    scene.hints.until_seen(b"")
    scene.top.mkdir()
    assert scene.watcher.health()
    (scene.top / "a.md").touch()
    scene.hints.until_seen(b"a.md")


def test_a_root_that_is_missing_at_the_start_is_no_error(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.top.rmdir()
    scene.start()
    try:
        assert scene.watcher.mode("r") == "off"
        assert not scene.watcher.health()
        scene.top.mkdir()
        assert scene.watcher.health()
        (scene.top / "a.md").touch()
        scene.hints.until_seen(b"a.md")
    finally:
        scene.watcher.stop()


def test_the_watch_set_is_checked_against_the_walk(scene: Scene) -> None:
    (scene.top / "a" / "b").mkdir(parents=True)
    scene.start()
    with scene.tree._lock:
        scene.tree._drop({scene.tree._watches[b"a"], scene.tree._watches[b"a/b"]})
    walk = Walk(scene.rules)
    assert list(walk) == []
    assert scene.watcher.compare("r", walk.folders) == 1
    assert scene.watched() == {b"", b"a", b"a/b"}
    scene.hints.until_seen(b"a")
    assert scene.watcher.compare("r", walk.folders) == 0


def test_a_folder_that_shows_to_be_a_cache_lacks_no_watch(scene: Scene) -> None:
    (scene.top / "env" / "lib").mkdir(parents=True)
    (scene.top / "env" / "pyvenv.cfg").touch()
    scene.start()
    walk = Walk(scene.rules)
    assert list(walk) == []
    assert walk.folders == [b""]
    assert scene.watcher.compare("r", walk.folders) == 0


def test_two_roots_and_a_folder_moved_between_them(tmp_path: Path) -> None:
    hints = Hints()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "D" / "E").mkdir(parents=True)
    roots = arrange([RootRules(name, os.fsencode(tmp_path / name)) for name in ("one", "two")])
    watcher = Watcher([IgnoreRules(root) for root in roots], hints)
    watcher.start()
    try:
        (tmp_path / "one" / "D").rename(tmp_path / "two" / "D")
        hints.until(lambda: Hint("two", b"D", folder=True) in hints.all)
        hints.until(lambda: Hint("one", b"D", deleted=True, folder=True) in hints.all)
        eventually(lambda: watcher.watch_count == 4)
        hints.clear()
        (tmp_path / "two" / "D" / "E" / "a.md").touch()
        hints.until(lambda: Hint("two", b"D/E/a.md") in hints.all)
        assert {hint.root for hint in hints.all} == {"two"}
    finally:
        watcher.stop()


def test_an_inner_root_is_watched_by_itself_only(tmp_path: Path) -> None:
    hints = Hints()
    (tmp_path / "outer" / "inner" / "deep").mkdir(parents=True)
    roots = arrange(
        [
            RootRules("outer", os.fsencode(tmp_path / "outer")),
            RootRules("inner", os.fsencode(tmp_path / "outer" / "inner")),
        ]
    )
    watcher = Watcher([IgnoreRules(root) for root in roots], hints)
    watcher.start()
    try:
        assert watcher.watch_count == 3
        (tmp_path / "outer" / "inner" / "deep" / "a.md").touch()
        hints.until(lambda: Hint("inner", b"deep/a.md") in hints.all)
        assert {hint.root for hint in hints.all} == {"inner"}
    finally:
        watcher.stop()


def test_names_that_are_not_utf8(scene: Scene) -> None:
    scene.start()
    folder = os.fsencode(scene.top) + b"/f\xff"
    Path(os.fsdecode(folder)).mkdir()
    scene.hints.until_seen(b"f\xff")
    with open(folder + b"/\xfe.md", "wb") as file:
        file.write(b"x")
    scene.hints.until_seen(b"f\xff/\xfe.md")


def test_followed_links_are_watched(tmp_path: Path) -> None:
    hints = Hints()
    (tmp_path / "one").mkdir()
    (tmp_path / "two" / "notes").mkdir(parents=True)
    (tmp_path / "one" / "link").symlink_to(tmp_path / "two" / "notes")
    (tmp_path / "one" / "loop").symlink_to(tmp_path / "one")
    roots = arrange(
        [
            RootRules("one", os.fsencode(tmp_path / "one"), follow_symlinks=True),
            RootRules("two", os.fsencode(tmp_path / "two")),
        ]
    )
    watcher = Watcher([IgnoreRules(roots[0])], hints)
    watcher.start()
    try:
        assert watcher.watch_count == 2
        (tmp_path / "two" / "notes" / "a.md").touch()
        hints.until(lambda: Hint("one", b"link/a.md") in hints.all)
    finally:
        watcher.stop()


def test_fault_c12_a_remote_folder_is_polled(scene: Scene) -> None:
    watcher = Watcher([scene.rules], scene.hints, gives_events=lambda _: False)
    watcher.start()
    try:
        assert watcher.mode("r") == "polling"
        assert watcher.to_poll() == [Hint("r", b"", folder=True)]
    finally:
        watcher.stop()


def test_polling_only_opens_nothing(scene: Scene) -> None:
    def forbidden() -> InotifyGroup:
        raise AssertionError

    watcher = Watcher([scene.rules], scene.hints, WatchSettings("always"), open_group=forbidden)
    watcher.start()
    assert watcher.health()
    assert (watcher.mode("r"), watcher.watch_count) == ("polling", 0)
    assert watcher.to_poll() == [Hint("r", b"", folder=True)]
    watcher.stop()


def test_where_there_is_no_inotify_the_plain_observer_gives_the_same_hints(scene: Scene) -> None:
    (scene.top / "node_modules").mkdir()
    scene.watcher = Watcher([scene.rules], scene.hints, open_group=ObserverGroup)
    scene.start()
    assert scene.watcher.mode("r") == "native"
    (scene.top / "a.md").write_text("x")
    scene.hints.until_seen(b"a.md")
    (scene.top / "node_modules" / "b.md").write_text("x")
    (scene.top / "a.md").rename(scene.top / "c.md")
    scene.hints.until(lambda: {Hint("r", b"a.md", deleted=True), Hint("r", b"c.md")} <= set(scene.hints.all))
    assert b"node_modules/b.md" not in scene.hints.paths()
    (scene.top / ".gitignore").write_text("*.log\n")
    scene.hints.until(lambda: Hint("r", b"", folder=True) in scene.hints.all)
    shutil.rmtree(scene.top)
    eventually(lambda: not scene.watcher.health())
    scene.top.mkdir()
    assert scene.watcher.health()
    (scene.top / "d.md").write_text("x")
    scene.hints.until_seen(b"d.md")


def test_stop_is_idempotent_and_says_nothing_more(scene: Scene) -> None:
    scene.start()
    scene.watcher.stop()
    scene.watcher.stop()
    scene.hints.clear()
    (scene.top / "a.md").touch()
    assert scene.watcher.watch_count == 0
    assert scene.hints.all == []
