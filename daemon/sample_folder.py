"""The sample folder for a first try: a copy of the files that come with ragd, where the person can change
them.

What must stay true: a copy that is there is never overwritten.
"""

from __future__ import annotations

import os
import shutil
from importlib.resources import as_file, files
from pathlib import Path

import platformdirs


def sample_folder() -> Path:
    """Where the copy is or would be."""
    return platformdirs.user_data_path("ragd-sample")


def copy_sample(target: Path) -> Path:
    """Copies the files to `target` unless it is there, all of them or none. Returns `target`."""
    if target.exists():
        return target
    temporary = target.with_name(f".{target.name}-{os.getpid()}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with as_file(files("ragd.daemon.sample")) as source:
        shutil.copytree(source, temporary, ignore=shutil.ignore_patterns("__init__.py", "__pycache__"))
    os.replace(temporary, target)
    return target
