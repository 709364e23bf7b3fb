"""What is planned and not yet done: one task a file, newest wish wins.

What must stay true: a file is in the queue once; whoever asked for it is told when it ended, also when a newer plan
took its place. What a person just saved goes before the backlog; adds of one plan come before its forgets.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ragd.daemon.plan import Action
from ragd.daemon.ticket import Ticket

FileKey = tuple[str, bytes]
"""(root name, path in the root)"""


@dataclass(slots=True)
class Task:
    """One action and everybody who waits for it."""

    root: str
    action: Action
    tickets: list[Ticket] = field(default_factory=list)
    is_urgent: bool = False

    @property
    def key(self) -> FileKey:
        return self.root, self.action.path

    def ended(self) -> None:
        for ticket in self.tickets:
            ticket.action_ended()


class TaskQueue:
    """Filled and emptied by the worker's thread; counted by others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tasks: dict[FileKey, Task] = {}
        self._lanes: dict[bool, deque[FileKey]] = {True: deque(), False: deque()}
        self._taken: set[FileKey] = set()

    def put(self, root: str, actions: Iterable[Action], tickets: Sequence[Ticket] = (), *, is_urgent: bool) -> int:
        """Add the actions of one plan; returns how many. An action that is waiting already is replaced."""
        count = 0
        for action in actions:
            count += 1
            with self._lock:
                task = self._tasks.get((root, action.path))
                if task is not None:
                    task.action = action
                    task.tickets += tickets
                    if task.is_urgent or not is_urgent:
                        continue
                    task.is_urgent = True  # its place in the slow lane is passed over when it comes up
                else:
                    task = Task(root, action, list(tickets), is_urgent)
                    self._tasks[task.key] = task
                self._lanes[is_urgent].append(task.key)
        return count

    def put_back(self, tasks: Iterable[Task]) -> None:
        """Return tasks that were taken and not done, to the front; a newer wish for the file keeps its action."""
        with self._lock:
            for task in reversed(list(tasks)):
                self._taken.discard(task.key)
                newer = self._tasks.get(task.key)
                if newer is not None:
                    newer.tickets += task.tickets
                    continue
                self._tasks[task.key] = task
                self._lanes[task.is_urgent].appendleft(task.key)

    def take(self, *, urgent: bool) -> Iterator[Task]:
        """The tasks of a lane, first come first served, each gone from the queue when it is given out."""
        lane = self._lanes[urgent]
        while lane:
            with self._lock:
                key = lane.popleft()
                task = self._tasks.get(key)
                if task is None or task.is_urgent != urgent:
                    continue
                del self._tasks[key]
                self._taken.add(key)
            yield task

    def done(self, task: Task) -> None:
        """The task that was taken has ended."""
        with self._lock:
            self._taken.discard(task.key)
        task.ended()

    def has_urgent(self) -> bool:
        with self._lock:
            return any(key in self._tasks and self._tasks[key].is_urgent for key in self._lanes[True])

    def holds(self, key: FileKey) -> bool:
        """Whether something is still to be done for this file."""
        with self._lock:
            return key in self._tasks or key in self._taken

    def __len__(self) -> int:
        """Files waiting or under way."""
        with self._lock:
            return len(self._tasks) + len(self._taken - self._tasks.keys())

    def tell(self, error: Exception) -> None:
        """Nothing can be done now: everybody who waits is told, and the tasks stay."""
        tickets: dict[int, Ticket] = {}
        with self._lock:
            for task in self._tasks.values():
                tickets |= {id(ticket): ticket for ticket in task.tickets}
                task.tickets = []
        for ticket in tickets.values():
            ticket.fail(error)

    def drop_all(self, error: Exception) -> None:
        """Nothing more will be done: everybody who waits is told."""
        with self._lock:
            tasks = list(self._tasks.values())
            self._tasks.clear()
            for lane in self._lanes.values():
                lane.clear()
        for task in tasks:
            for ticket in task.tickets:
                ticket.fail(error)
