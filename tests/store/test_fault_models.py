"""Real models against the faults of silent truncation and of growing memory: the default one, and tiny ones made here
whose files name different limits."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragd.chunkers.cut import cut
from ragd.chunkers.records import Chunk, CutSettings, ModelBudget, SourceFile
from ragd.store.embedding.slot import OpenedModel, open_model

pytestmark = [pytest.mark.model, pytest.mark.timeout(240)]

_SYMBOLS = (
    "x[i]->*p&&!(~a^b)|=0xFF<<3;/*…*/ λ:={@#$%}\\n«»¶§ 0b1010 __init__() !=== ?. ?? ~> <|endoftext|> [SEP] 🧪温度\n"
)
_BASE64 = "QUJD/kxN+uFzZGZhc2RmYXNkZmFzZGYrL3p6eg==" * 3 + "\n"


def code_heavy() -> dict[str, bytes]:
    library = Path(sysconfig.get_path("stdlib"))
    markdown = "# Notes\n\n" + "".join(
        f"## Step {n}\n\n```c\n{_SYMBOLS * 9}```\n\nText `a->b[{n}]`.\n\n" for n in range(9)
    )
    table = "| key | expression |\n|---|---|\n" + "".join(f"| `k[{n}]` | `{_SYMBOLS[:60]}` |\n" for n in range(60))
    return {
        "tokenize.py": (library / "tokenize.py").read_bytes(),
        "keyword.py": (library / "keyword.py").read_bytes(),
        "symbols.c": (_SYMBOLS * 60).encode(),
        "symbols.txt": (_SYMBOLS * 60).encode(),
        "one line.txt": (_SYMBOLS.replace("\n", " ") * 60).encode(),
        "base64.txt": (_BASE64 * 60).encode(),
        "notes.md": (markdown + table).encode(),
        "a.csv": ("a;b\n" + "".join(f"{n};{_SYMBOLS.strip()}\n" for n in range(60))).encode(),
        "regex.js": "".join(f"const r{n} = /^(?:[^\\s\\[\\]{{}}]+|\\\\.){{{n},}}$/giu;\n" for n in range(200)).encode(),
    }


def chunks_of(opened: OpenedModel) -> list[Chunk]:
    budget = ModelBudget(opened.identity.max_tokens, opened.identity.document_prompt)
    chunks = [
        chunk
        for name, data in code_heavy().items()
        for chunk in cut(SourceFile(data, "r", name.encode()), CutSettings(), opened.counter, budget).chunks
    ]
    assert len(chunks) > 100
    return chunks


def assert_nothing_is_cut_off(opened: OpenedModel, embedder: Any) -> None:
    """Counted by the loaded model's own tokenizer, with prompt, prefix and special tokens; and a text without its last
    tenth has another vector, so that the model did read it."""
    chunks = chunks_of(opened)
    model, prompt = embedder._model, opened.identity.document_prompt
    limit = min(model.max_seq_length, opened.identity.max_tokens)
    for chunk in chunks:
        tokens = len(model.tokenizer(prompt + chunk.embedded_text, truncation=False, verbose=False)["input_ids"])
        assert tokens == chunk.tokens <= limit
    fullest = sorted(chunks, key=lambda chunk: -chunk.tokens)[:40]
    assert fullest[0].tokens > 0.8 * limit
    texts = [chunk.embedded_text for chunk in fullest]
    shorter = [text[: int(len(text) * 0.9)] for text in texts]
    same = np.sum(embedder.embed_documents(texts) * embedder.embed_documents(shorter), axis=1)
    assert (same < 1 - 1e-6).all()


def test_fault_e3_code_heavy_text_fits_the_default_model() -> None:
    opened = open_model("all-MiniLM-L6-v2", threads=1)
    embedder: Any = opened.load()
    try:
        assert embedder._model.max_seq_length == 256
        assert_nothing_is_cut_off(opened, embedder)
    finally:
        embedder.close()


def tiny_model(folder: Path, *, max_seq_length: int, model_max_length: int, positions: int) -> Path:
    """A random BERT of 32 dimensions whose three limits are named in three files."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.models import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    letters = "abcdefghijklmnopqrstuvwxyz0123456789_(){}[]<>=!?&|^~*+-/\\%$#@.,;:'\"`"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "self", "return", "const", "text", *letters]
    words += [f"##{letter}" for letter in letters]
    (folder / "vocab.txt").write_text("\n".join(words))
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=positions,
    )
    BertModel(config).save_pretrained(folder / "bert")
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt"), model_max_length=model_max_length).save_pretrained(
        folder / "bert"
    )
    made = SentenceTransformer(modules=[Transformer(str(folder / "bert")), Pooling(32)], device="cpu")
    made.save(str(folder / "model"))
    for name, key, value in (
        ("sentence_bert_config.json", "max_seq_length", max_seq_length),
        ("tokenizer_config.json", "model_max_length", model_max_length),
    ):
        path = folder / "model" / name
        path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    return folder / "model"


@pytest.mark.parametrize("prompt", ["", "passage: "])
@pytest.mark.parametrize(
    ("max_seq_length", "model_max_length", "positions", "limit"),
    [(48, 512, 512, 48), (512, 64, 512, 64), (500, 500, 96, 96), (128, 10**30, 200, 128)],
)
def test_fault_e3_the_smallest_of_a_models_limits_holds(
    tmp_path: Path, max_seq_length: int, model_max_length: int, positions: int, limit: int, prompt: str
) -> None:
    folder = tiny_model(tmp_path, max_seq_length=max_seq_length, model_max_length=model_max_length, positions=positions)
    opened = open_model(str(folder), document_prompt=prompt, threads=1)
    assert opened.identity.max_tokens == limit
    embedder: Any = opened.load()
    try:
        assert_nothing_is_cut_off(opened, embedder)
        with pytest.raises(ValueError, match="the model takes"):
            embedder.embed_documents(["self " * limit])
    finally:
        embedder.close()
