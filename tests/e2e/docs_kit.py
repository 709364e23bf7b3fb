"""A real documentation tree for tests: the source distribution of celery, fetched once, and a part of it unpacked.

What must stay true: the archive is the one whose hash stands here, from wherever it came; nothing of it is run by
these tests; what is left out is left out by name, so that every run indexes the same files.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import platformdirs

RELEASE = "celery==5.7.0"
ARCHIVE = "celery-5.7.0.tar.gz"
SHA256 = "6a5dfcf6662287204f009a02002b9e66c83d4105e47ebabdc7079108772fc6f0"
FETCH_S = 300.0

TAKEN = ("docs/", "examples/", "requirements/", "README.rst", "celery/schedules.py", "celery/security/")
LEFT_OUT = (
    "docs/history/",  # release notes say everything a second and a third time
    "docs/userguide/configuration.rst",  # these are large, and the test has a few minutes
    "docs/userguide/tasks.rst",
    "docs/userguide/extending.rst",
    "docs/userguide/daemonizing.rst",
    "docs/AUTHORS.txt",
    "docs/spelling_wordlist.txt",
    "docs/Makefile",
    "docs/make.bat",
)
"""Beginnings of paths in the archive, below its one folder."""


def archive() -> Path:
    """The source distribution, from this user's cache or else downloaded by pip. AssertionError when neither
    works."""
    folder = platformdirs.user_cache_path("ragd-tests")
    kept = folder / ARCHIVE
    if kept.is_file() and _sha256(kept) == SHA256:
        return kept
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as fresh:
        options = ["--no-deps", "--no-binary=:all:", "--no-build-isolation", "--quiet", "--dest", fresh]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", RELEASE, *options],
            capture_output=True,
            text=True,
            timeout=FETCH_S,
            check=False,
        )
        found = Path(fresh) / ARCHIVE
        assert done.returncode == 0, f"pip could not download {RELEASE}, which this test indexes:\n{done.stderr}"
        assert found.is_file(), f"pip downloaded no {ARCHIVE} but {os.listdir(fresh)}"
        assert _sha256(found) == SHA256, f"{ARCHIVE} is not the file this test was written for"
        found.replace(kept)
    return kept


def unpack(file: Path, folder: Path, most_files: int | None = None) -> list[str]:
    """Unpack the part that is indexed into `folder`. Returns the paths below it, sorted; with `most_files` only so
    many, evenly spread."""
    with tarfile.open(file) as packed:
        members = {member.name.partition("/")[2]: member for member in packed.getmembers() if member.isfile()}
        chosen = sorted(rel for rel in members if rel.startswith(TAKEN) and not rel.startswith(LEFT_OUT))
        if most_files is not None:
            chosen = chosen[:: max(1, len(chosen) // most_files)]
        for rel in chosen:
            member = members[rel].replace(name=rel, deep=False)
            packed.extract(member, folder, filter="data")
    return chosen


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
