"""Where this process writes its log: indexing that would make it write more (FAULTS C9).

What must stay true: only a regular file that still stands at its path is named.
"""

from __future__ import annotations

import os
import stat
import sys

_PATH_BYTES = 1024


def output_files(descriptors: tuple[int, ...] = (1, 2)) -> list[bytes]:
    """Absolute paths of the files that standard output and standard error go to."""
    found = []
    for descriptor in descriptors:
        try:
            here = os.fstat(descriptor)
            path = _path_of(descriptor) if stat.S_ISREG(here.st_mode) else None
            if path is not None and os.path.samestat(here, os.stat(path)):
                found.append(path)
        except OSError:  # closed, or its file was removed: then there is nothing to leave out
            continue
    return found


def _path_of(descriptor: int) -> bytes | None:
    if sys.platform == "linux":
        return os.readlink(b"/proc/self/fd/%d" % descriptor)
    elif sys.platform == "darwin":  # a type checker follows the branch of its own platform alone
        import fcntl

        return fcntl.fcntl(descriptor, fcntl.F_GETPATH, bytes(_PATH_BYTES)).rstrip(b"\0")
    else:
        return None
