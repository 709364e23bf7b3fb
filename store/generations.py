"""Which generation answers (live), which is being filled (building), and how one gives way to the other.

What must stay true: at most one is live and one building; a building one goes live in one transaction; a
retired one keeps its rows until no query can still read it. Resumable after a kill at any point.
"""

from __future__ import annotations

from dataclasses import dataclass

from ragd.store import lexical_table
from ragd.store.epochs import Epochs
from ragd.store.rows import GENERATION_COLUMNS, generation_of
from ragd.store.sqlite import Connection, Database
from ragd.store.types import Generation, ModelIdentity

_FILES_A_STEP = 200


@dataclass(frozen=True, slots=True)
class Generations:
    """`live` answers. `building` is filled in the background, if there is one."""

    live: Generation
    building: Generation | None

    @property
    def target(self) -> Generation:
        """Where files are indexed."""
        return self.building or self.live


def current(database: Database) -> Generations | None:
    """The generations as they are; None in a catalog that has none yet."""
    with database.read() as link:
        found = _by_state(link)
    return Generations(found["live"], found.get("building")) if "live" in found else None


def _by_state(link: Connection) -> dict[str, Generation]:
    rows = link.execute(f"SELECT {GENERATION_COLUMNS} FROM generation WHERE state <> 'retired'")
    return {generation.state: generation for generation in map(generation_of, rows)}


def settle(
    database: Database, identity: ModelIdentity, installation: str, *, epochs: Epochs, now_ns: int
) -> Generations:
    """Make the generations fit the model: the first one is live at once, a changed model starts a building
    one.

    A building one of yet another model is retired; so is one that is no longer needed because the model
    changed back to the live one. A live one without a file in it is replaced at once: there is nothing to
    keep answering.
    """
    with database.write() as link:
        found = _by_state(link)
        live, building = found.get("live"), found.get("building")
        if building is not None and (building.identity != identity.fingerprint or live is None):
            _retire(link, building.id, epochs.next)
            building = None
        if live is not None and live.identity != identity.fingerprint and building is None:
            if _has_files(link, live.id):
                building = _start(link, identity, installation, "building", now_ns)
            else:
                _retire(link, live.id, epochs.next)
                live = None
        elif live is not None and live.identity == identity.fingerprint and building is not None:
            _retire(link, building.id, epochs.next)
            building = None
        if live is None:
            live = _start(link, identity, installation, "live", now_ns)
    epochs.advance()
    return Generations(live, building)


def _has_files(link: Connection, generation: int) -> bool:
    return link.execute("SELECT 1 FROM file WHERE generation = ? LIMIT 1", (generation,)).fetchone() is not None


def _start(link: Connection, identity: ModelIdentity, installation: str, state: str, now_ns: int) -> Generation:
    link.execute(
        "INSERT INTO generation (identity, model, dimension, collection, state, lexical, created_ns)"
        " VALUES (?, ?, ?, hex(randomblob(16)), ?, ?, ?)",
        (identity.fingerprint, identity.name, identity.dimension, state, lexical_table.TOKENIZER, now_ns),
    )
    number = link.last_insert_rowid()
    # The name holds the model identity: vectors of two models never meet in one collection, even when the
    # catalog is lost or an older one is put back.
    collection = f"{collection_prefix(installation)}{identity.fingerprint[:16]}-{number}"
    link.execute("UPDATE generation SET collection = ? WHERE id = ?", (collection, number))
    lexical_table.create(link, number)
    return Generation(number, identity.fingerprint, collection, identity.dimension, state)


def collection_prefix(installation: str) -> str:
    """What the names of all collections of this installation begin with."""
    return f"ragd-{installation}-"


def make_live(database: Database, building: Generation, *, epochs: Epochs) -> Generations:
    """The building generation answers from now on; the one before it is retired. One transaction."""
    with database.write() as link:
        link.execute("UPDATE generation SET state = 'retired', epoch = ? WHERE state = 'live'", (epochs.next,))
        link.execute("UPDATE generation SET state = 'live' WHERE id = ? AND state = 'building'", (building.id,))
        found = _by_state(link)
        if "live" not in found:
            raise ValueError(f"generation {building.id} is not being built")
    epochs.advance()
    return Generations(found["live"], None)


def _retire(link: Connection, generation: int, epoch: int) -> None:
    link.execute("UPDATE generation SET state = 'retired', epoch = ? WHERE id = ?", (epoch, generation))


def retired(database: Database, safe_epoch: int) -> list[Generation]:
    """Retired generations that no query can still read."""
    with database.read() as link:
        rows = link.execute(
            f"SELECT {GENERATION_COLUMNS} FROM generation WHERE state = 'retired' AND epoch <= ?",
            (safe_epoch,),
        )
        return list(map(generation_of, rows))


def remove_some(database: Database, generation: Generation, limit: int = _FILES_A_STEP) -> bool:
    """Delete the rows of some files of a retired generation; True when nothing of it is left.

    Its collection has to be dropped before: afterwards nobody knows its name.
    """
    with database.write(durable=False) as link:
        lexical_table.drop(link, generation.id)
        link.execute(
            "DELETE FROM file WHERE id IN (SELECT id FROM file WHERE generation = ? LIMIT ?)",
            (generation.id, limit),
        )
        if _has_files(link, generation.id):
            return False
        link.execute("DELETE FROM pending WHERE generation = ?", (generation.id,))
        link.execute("DELETE FROM tally WHERE generation = ?", (generation.id,))
        link.execute("DELETE FROM generation WHERE id = ? AND state = 'retired'", (generation.id,))
        return True
