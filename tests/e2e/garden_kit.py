"""Files that are written, edited, renamed and deleted at random, many at a time.

What must stay true: the same seed does the same; every text holds words of its own, so that the hash embedder meets
no text twice by chance; what is on disk is what the files say, whatever a daemon does.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from pathlib import Path

_WORDS = [f"{first}{second}{third}" for first in "bdfgklmn" for second in "aeiou" for third in ("r", "st", "nd", "x")]
PARAGRAPHS = 16
PARAGRAPH_WORDS = 30


@dataclass
class Garden:
    """A folder of Markdown files."""

    folder: Path
    random: random.Random
    marks: dict[str, str] = field(default_factory=dict)
    """Path in the folder -> a word that stands in this file alone."""
    gone: list[str] = field(default_factory=list)
    """Words of files that are there no more."""
    made: int = 0
    edits: int = 0

    def plant(self, count: int) -> None:
        """New files in folders of 20."""
        for _ in range(count):
            rel = f"bed{self.made // 20}/plant{self.made}.md"
            self.made += 1
            self._write(rel, self._text(rel))

    def edit(self, count: int) -> None:
        """One paragraph each; half of them saved by a rename, as editors do."""
        for rel in self._some(count):
            path = self.folder / rel
            parts = path.read_text(encoding="utf-8").split("\n\n")
            place = self.random.randrange(2, len(parts))
            parts[place] = self._paragraph()
            self.edits += 1
            if self.edits % 2:
                path.write_text("\n\n".join(parts), encoding="utf-8")
            else:
                beside = path.with_name(f".{path.name}.tmp")
                beside.write_text("\n\n".join(parts), encoding="utf-8")
                beside.replace(path)

    def rename(self, count: int) -> None:
        """To another name in the same or in another folder; the content stays."""
        for rel in self._some(count):
            target = f"bed{self.random.randrange(9)}/moved{self.made}.md"
            self.made += 1
            (self.folder / target).parent.mkdir(exist_ok=True)
            os.rename(self.folder / rel, self.folder / target)
            self.marks[target] = self.marks.pop(rel)

    def rename_folder(self) -> None:
        """A whole folder."""
        beds = sorted({rel.partition("/")[0] for rel in self.marks})
        bed = self.random.choice(beds)
        target = f"bed{self.made}-again"
        self.made += 1
        os.rename(self.folder / bed, self.folder / target)
        moved = {rel: mark for rel, mark in self.marks.items() if rel.startswith(f"{bed}/")}
        for rel, mark in moved.items():
            del self.marks[rel]
            self.marks[f"{target}/{rel.partition('/')[2]}"] = mark

    def delete(self, count: int) -> None:
        for rel in self._some(count):
            (self.folder / rel).unlink()
            self.gone.append(self.marks.pop(rel))

    def churn(self, size: int) -> None:
        """Some of everything."""
        self.plant(size // 2)
        self.edit(size)
        self.rename(size // 2)
        self.delete(size // 3)

    def _some(self, count: int) -> list[str]:
        return self.random.sample(sorted(self.marks), min(count, len(self.marks)))

    def _write(self, rel: str, text: str) -> None:
        path = self.folder / rel
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def _text(self, rel: str) -> str:
        mark = self.marks[rel] = f"zq{self.made}mark"
        body = [self._paragraph() for _ in range(PARAGRAPHS)]
        return "\n\n".join([f"# Plant {self.made}", f"{mark} stands here alone.", *body])

    def _paragraph(self) -> str:
        words = self.random.choices(_WORDS, k=PARAGRAPH_WORDS)
        words[self.random.randrange(PARAGRAPH_WORDS)] = f"n{self.random.getrandbits(40):x}"
        return " ".join(words).capitalize() + "."
