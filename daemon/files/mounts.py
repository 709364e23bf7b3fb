"""Which folders lie on file systems that give no events for changes made on another machine.

What must stay true: doubt means polling, for a poll only costs time.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

REMOTE_TYPES = frozenset(
    {
        "9p", "afs", "autofs", "ceph", "cifs", "coda", "davfs", "drvfs", "fakeowner", "fuse.davfs2",
        "fuse.gcsfuse", "fuse.glusterfs", "fuse.goofys", "fuse.grpcfuse", "fuse.osxfs", "fuse.rclone",
        "fuse.s3fs", "fuse.smbnetfs", "fuse.sshfs", "fuse.vmhgfs-fuse", "glusterfs", "ncpfs", "nfs",
        "nfs4", "osxfs", "prl_fs", "smb3", "smbfs", "vboxsf", "virtiofs", "vmhgfs",
    }
)  # fmt: skip
"""Types as /proc/self/mountinfo names them: network shares, and folders a host lends to a guest or container.
"""

MOUNTINFO = Path("/proc/self/mountinfo")


def gives_events(path: bytes, mountinfo: Path = MOUNTINFO) -> bool:
    """False when the folder lies on a remote file system, True where that is not known (other platforms)."""
    if sys.platform != "linux" and mountinfo == MOUNTINFO:
        return True
    try:
        table = mountinfo.read_bytes()
    except OSError:
        return True
    return filesystem_type(os.path.realpath(path), table) not in REMOTE_TYPES


def filesystem_type(path: bytes, table: bytes) -> str:
    """The type of the mount a real path lies on, from a mountinfo table (proc(5)); "" when none fits."""
    best, kind = -1, ""
    for line in table.splitlines():
        fields, _, rest = line.partition(b" - ")
        columns = fields.split(b" ")
        if len(columns) < 5 or not rest:
            continue
        point = re.sub(rb"\\([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), columns[4])
        inside = point == b"/" or path == point or path.startswith(point + b"/")
        if inside and len(point) >= best:
            best, kind = len(point), rest.split(b" ", 1)[0].decode("ascii", "replace")
    return kind
