"""Real text for the benchmarks: the documentation and sources that installed packages bring along.

What must stay true: the same installation gives the same files in the same order; nothing is downloaded.
"""

from __future__ import annotations

import shutil
import sysconfig
from collections.abc import Iterator
from pathlib import Path

_SUFFIXES = (".md", ".rst", ".txt", ".py")
_LEAST_BYTES, _MOST_BYTES = 2_000, 60_000


def text_files(suffixes: tuple[str, ...] = _SUFFIXES) -> Iterator[Path]:
    """Files of the installed packages and the standard library, spread over packages."""
    folders = [Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("stdlib"))]
    found = sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in suffixes and path.is_file() and _LEAST_BYTES <= path.stat().st_size <= _MOST_BYTES
    )
    step = 7919  # a prime: neighbours in the list (one package) end up far apart
    for number in range(len(found)):
        yield found[number * step % len(found)]


def copy_files(target: Path, total_bytes: int, suffixes: tuple[str, ...] = _SUFFIXES) -> int:
    """Copy real files into `target` until they come to `total_bytes`; returns how many."""
    target.mkdir(parents=True, exist_ok=True)
    copied = count = 0
    for path in text_files(suffixes):
        if copied >= total_bytes:
            break
        data = path.read_bytes()
        folder = target / f"part{count % 20:02}"
        folder.mkdir(exist_ok=True)
        shutil.copyfile(path, folder / f"{count:05}-{path.name}")
        copied += len(data)
        count += 1
    return count
