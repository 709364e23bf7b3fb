"""Writing the configuration: a new file, or one more root in a file that is there.

What must stay true: a file is replaced whole or not at all; nothing is written that would be refused when it
is read; what the person wrote stays as it is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ragd.daemon.config import Config, load_config, parse_config
from ragd.daemon.config_example import example_toml, toml_value
from ragd.daemon.config_roots import same_folder
from ragd.daemon.errors import UsageError


def write_new(file: Path, roots: Sequence[str], *, overwrite: bool = False) -> Config:
    """Writes the commented configuration with these folders as roots (none: the one of the example). Raises
    UsageError when there is a file already and it may not be overwritten, or when the folders cannot be
    roots."""
    if not overwrite and (file.exists() or file.is_symlink()):
        raise UsageError(f"{file} is there already. --force overwrites it.")
    try:
        text = example_toml(roots) if roots else example_toml()
    except ValueError as error:
        raise UsageError(str(error)) from error
    config = parse_config(text, file)
    _replace(file, text)
    return config


def with_roots(file: Path, folders: Sequence[str], sample: str | None = None) -> tuple[Config, list[str]]:
    """The configuration in `file` with these absolute folders among its roots, and those that were added to
    it. A file that is still the one written for the folder `sample` alone is written anew without it."""
    if sample is not None and folders and file.read_bytes() == example_toml((sample,)).encode():
        return write_new(file, folders, overwrite=True), list(folders)
    config = load_config(file)
    missing = [folder for folder in folders if not any(same_folder(folder, root.path) for root in config.roots)]
    if not missing:
        return config, []
    old = file.read_bytes().decode("utf-8-sig")
    tables = "".join(f"\n[[root]]\npath = {toml_value(folder)}\n" for folder in missing)
    text = old + ("" if old.endswith("\n") else "\n") + tables
    config = parse_config(text, file)
    _replace(file, text)
    return config, missing


def _replace(file: Path, text: str) -> None:
    """All of it or nothing of it, also when the power fails. A symbolic link keeps its place: its target is
    replaced."""
    target = Path(os.path.realpath(file))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=".config-")
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(text.encode())
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(temporary, target)
        except OSError:
            Path(temporary).unlink()
            raise
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from error
