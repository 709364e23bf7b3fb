"""What decides a model's vectors, as one fingerprint, read from its files without loading it.

What must stay true: two models with the same fingerprint give the same vectors, whatever they are called
(FAULTS E1); `max_tokens` is what the model really takes, special tokens included (FAULTS E3).
"""

from __future__ import annotations

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

from ragd.store.embedding.model_files import Memory, ModelFiles, file_sha256
from ragd.store.errors import ModelError
from ragd.store.types import ModelIdentity

PRECISION = "fp32"
UNLIMITED_TOKENS = 1 << 16
"""For a model without a limit (static embeddings): a limit all the same, so that a text stays a passage."""

_VOLATILE = frozenset(
    {
        "_name_or_path",
        "name_or_path",
        "transformers_version",
        "torch_dtype",
        "dtype",
        "use_cache",
        "__version__",
    }
)
_NO_LIMIT = 10**9
_OFFSET_POSITIONS = frozenset({"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "data2vec-text"})
"""Models whose first positions are taken by the padding token."""
_DEFAULT_MODULES = [
    {"type": "sentence_transformers.models.Transformer", "path": ""},
    {"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"},
]
_POOLING_MODES = (
    "cls_token",
    "max_tokens",
    "mean_tokens",
    "mean_sqrt_len_tokens",
    "weightedmean_tokens",
    "lasttoken",
)

Config = dict[str, Any]


def read_identity(
    files: ModelFiles,
    *,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    memory: Memory | None = None,
) -> ModelIdentity:
    """The identity of the model in `files`. A prompt of None is the one the model names itself, else none.

    Raises ModelError when the files are incomplete or of a kind that is not supported.
    """
    folder = files.folder
    modules = _modules(files)
    first = folder / modules[0]["path"]
    configs = [_folder_config(folder / module["path"]) for module in modules]
    query, document = _prompts(_read(folder / "config_sentence_transformers.json"))
    query = query if query_prompt is None else query_prompt
    document = document if document_prompt is None else document_prompt
    if (query or document) and any(config.get("include_prompt") is False for config in configs):
        raise ModelError(f"embedding model {files.name} leaves prompts out of its pooling, which is not supported")
    max_tokens = _max_tokens(modules[0]["type"], first)
    parts = {
        "modules": [[module["type"], config] for module, config in zip(modules, configs, strict=True)],
        "weights": _weights(folder, modules, memory),
        "tokenizer": _tokenizer_behaviour(tokenizer_json(files)),
        "prompts": [query, document],
        "max_tokens": max_tokens,
        "precision": PRECISION,
    }
    fingerprint = hashlib.blake2b(_canonical(parts).encode(), digest_size=16).hexdigest()
    return ModelIdentity(files.name, fingerprint, _dimension(files, modules, configs), max_tokens, query, document)


def tokenizer_json(files: ModelFiles) -> str:
    """The text of the model's tokenizer.json. Raises ModelError when there is none."""
    path = files.folder / _modules(files)[0]["path"] / "tokenizer.json"
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelError(f"embedding model {files.name} has no usable tokenizer: {path}: {error.strerror}") from error


def _modules(files: ModelFiles) -> list[dict[str, str]]:
    path = files.folder / "modules.json"
    listed = _read(path) if path.exists() else _DEFAULT_MODULES
    modules = []
    for module in listed:
        kind = str(module["type"])
        if not kind.startswith("sentence_transformers.") or kind.endswith("Router"):
            raise ModelError(f"embedding model {files.name} needs {kind}, which is not loaded: only plain models are")
        modules.append({"type": kind.rpartition(".")[2], "path": str(module["path"])})
    if not modules:
        raise ModelError(f"embedding model {files.name}: {path} names no modules")
    return modules


def _folder_config(folder: Path) -> Config:
    """All that configures one module. Vocabularies and tokenizers are hashed elsewhere."""
    config: Config = {}
    for name in ("config.json", "sentence_bert_config.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            config |= {key: value for key, value in _read(folder / name).items() if key not in _VOLATILE}
    modes = {mode for mode in _POOLING_MODES if config.pop(f"pooling_mode_{mode}", False)}
    return config | ({"pooling": sorted(modes)} if modes else {})


def _weights(folder: Path, modules: list[dict[str, str]], memory: Memory | None) -> list[list[str]]:
    places = dict.fromkeys(module["path"] for module in modules)
    return [
        [place, path.name, file_sha256(path, memory)]
        for place in places
        for path in sorted((folder / place).glob("*.safetensors"))
    ]


def _tokenizer_behaviour(text: str) -> str:
    """Hash of a tokenizer.json but for its truncation and padding, which are switched off."""
    tokenizer = json.loads(text)
    tokenizer.pop("truncation", None)
    tokenizer.pop("padding", None)
    return hashlib.sha256(_canonical(tokenizer).encode()).hexdigest()


def _prompts(config: Config) -> tuple[str, str]:
    """Query and document prompt by the names sentence-transformers gives them."""
    prompts = config.get("prompts") or {}
    default = prompts.get(config.get("default_prompt_name") or "") or ""
    document = next((prompts[name] for name in ("document", "passage", "corpus") if prompts.get(name)), default)
    return prompts.get("query") or default, document


def _max_tokens(kind: str, folder: Path) -> int:
    config, tokenizer = _read(folder / "config.json"), _read(folder / "tokenizer_config.json")
    limits = [
        _read(folder / "sentence_bert_config.json").get("max_seq_length"),
        tokenizer.get("model_max_length"),
        _positions(config),
    ]
    known = [int(limit) for limit in limits if limit and 0 < limit < _NO_LIMIT]
    if kind == "StaticEmbedding" or not known:
        return UNLIMITED_TOKENS
    return min(known)


def _positions(config: Config) -> int | None:
    positions = config.get("max_position_embeddings")
    if not isinstance(positions, int):
        return None
    if config.get("model_type") in _OFFSET_POSITIONS:
        positions -= int(config.get("pad_token_id") or 0) + 1
    return positions


def _dimension(files: ModelFiles, modules: list[dict[str, str]], configs: list[Config]) -> int:
    for module, config in zip(reversed(modules), reversed(configs), strict=True):
        if "out_features" in config:
            return int(config["out_features"])
        if "word_embedding_dimension" in config:
            return int(config["word_embedding_dimension"]) * max(1, len(config.get("pooling", ())))
        if module["type"] == "StaticEmbedding":
            return _static_dimension(files.folder / module["path"] / "model.safetensors")
        if "hidden_size" in config:
            return int(config["hidden_size"])
    raise ModelError(f"embedding model {files.name}: its files do not say how long its vectors are")


def _static_dimension(weights: Path) -> int:
    """From the header of a safetensors file: 8 bytes length, then JSON with the shape of each tensor."""
    with weights.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(min(length, 1 << 20)))
    shapes = [entry["shape"] for name, entry in header.items() if name != "__metadata__"]
    return int(next(shape[1] for shape in shapes if len(shape) == 2))


def _read(path: Path) -> Any:
    """A JSON file; an empty map when there is none. Raises ModelError when it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ModelError(f"embedding model: {path} cannot be read: {error}") from error


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
