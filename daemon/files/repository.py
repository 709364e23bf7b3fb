"""Where git repositories begin, and which patterns apply in them before any `.gitignore` does.

What must stay true: nothing here runs git or reads outside of the folders above a root and their `.git`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ragd.daemon.files.gitignore import MAX_FILE_BYTES


def read_small(path: bytes) -> bytes | None:
    """The bytes of an ignore file, or None where there is none to be believed: as git does, a symbolic link
    is not followed and a special file is not opened for reading."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    with suppress(OSError), os.fdopen(os.open(path, flags), "rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
        return content if len(content) <= MAX_FILE_BYTES else None
    return None


def git_folder(top: bytes) -> bytes | None:
    """The repository's own folder, when a working tree begins at `top`: `.git`, or what a `.git` file of a
    worktree or submodule points at. None when `top` begins no repository (an empty `.git` folder is none)."""
    place = os.path.join(top, b".git")
    if not os.path.isdir(place):
        content = read_small(place)
        if content is None or not content.startswith(b"gitdir:"):
            return None
        place = os.path.join(top, content[len(b"gitdir:") :].strip())
    if not os.path.isfile(os.path.join(place, b"HEAD")) and not os.path.islink(os.path.join(place, b"HEAD")):
        return None
    common = common_folder(place)
    has_all = all(os.path.isdir(os.path.join(common, part)) for part in (b"objects", b"refs"))
    return place if has_all else None


def common_folder(git: bytes) -> bytes:
    """Of a worktree: the folder it shares with the main one, where info/exclude lies."""
    pointer = read_small(os.path.join(git, b"commondir"))
    return git if pointer is None else os.path.normpath(os.path.join(git, pointer.strip()))


def exclude_file(git: bytes) -> bytes:
    return os.path.join(common_folder(git), b"info", b"exclude")


def find_top(folder: bytes) -> bytes | None:
    """The top of the repository that holds a real path, on the same file system; None outside of any."""
    try:
        device = os.stat(folder).st_dev
    except OSError:
        return None
    place = folder
    while True:
        if git_folder(place) is not None:
            return place
        above = os.path.dirname(place)
        if above == place or not _same_device(above, device):
            return None
        place = above


def _same_device(folder: bytes, device: int) -> bool:
    try:
        return Path(os.fsdecode(folder)).stat().st_dev == device
    except OSError:
        return False
