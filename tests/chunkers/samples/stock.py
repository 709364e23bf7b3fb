"""Counts what lies on shelves."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

LOW = 5
"""Below this count more is ordered."""


@dataclasses.dataclass
class Shelf:
    """Holds one article."""

    article: str
    count: int = 0

    @property
    def is_low(self) -> bool:
        return self.count < LOW


class Stock:
    """All shelves.

    Articles are looked up by their exact names; a shelf is made when something is put on it for the first time and
    stays when the last piece is taken.
    """

    def __init__(self) -> None:
        self._shelves: dict[str, Shelf] = {}

    # Nothing is checked here: more is always welcome.
    def put(self, article: str, pieces: int) -> None:
        shelf = self._shelves.setdefault(article, Shelf(article))
        shelf.count += pieces

    def take(self, article: str, pieces: int) -> int:
        """Take pieces from a shelf and say how many are left."""
        shelf = self._shelves.get(article)
        if shelf is None:
            raise KeyError(article)
        if shelf.count < pieces:
            raise ValueError(f"only {shelf.count} of {article} are left")
        shelf.count -= pieces
        return shelf.count

    def low(self) -> Iterator[Shelf]:
        yield from (shelf for shelf in self._shelves.values() if shelf.is_low)

    async def report(self, write, *, width=20):
        for article, shelf in sorted(self._shelves.items()):
            note = " (order more)" if shelf.is_low else ""
            try:
                await write(f"{article:<{width}} {shelf.count}{note}")
            except OSError:
                # the reader has gone
                break
            else:
                continue


if __name__ == "__main__":
    stock = Stock()
    stock.put("nails", 10)
    print(stock.take("nails", 6))
