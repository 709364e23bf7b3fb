"""Bytes to text, with an exact way back to bytes and lines, or the verdict that the bytes are no text.

What must stay true: for all 0 <= a <= b <= len(text), the bytes from `byte_at(a)` to `byte_at(b)` are those
that `text[a:b]` was decoded from. Newlines are left as they are; a byte order mark is not part of the text.
A byte that fits no encoding becomes U+FFFD, one a byte; a NUL becomes a blank of the same length.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field

import charset_normalizer

VERSION = 2

_STEP_CHARS = 1024
"""Characters between two stored byte offsets: the map costs 1 % of the text."""
_SAMPLE_BYTES = 64 * 1024
_LINE_END = re.compile(r"\r\n|\n|\r")
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
"""Control characters that text files do not hold: not tab, line ends, form feed or escape."""
_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_FAR_ENCODINGS = [
    *("big5hkscs", "cp932", "cp949", "euc_jp", "gb18030", "shift_jis_2004"),
    *("cp1251", "cp1253", "cp1255", "cp1256", "cp866", "cp874"),
    *("iso8859_5", "iso8859_6", "iso8859_7", "iso8859_8", "koi8_r", "koi8_u"),
]
"""What a guess may name for scripts other than Latin: encodings without state from one character to the next."""
_HIGH_RUN = re.compile(rb"[\x80-\xff]{2,}")
_PAIR_IN_WORD = re.compile(
    rb"(?<=[a-zA-Z])[\x80-\xff]{2}(?![\x80-\xff])|(?<![\x80-\xff])[\x80-\xff]{2}(?=[a-zA-Z])",
)
_SYMBOL_IN_WORD = re.compile(r"(?<=[^\W\d_])[\u00a1-\u00bf\u2020-\u2122](?=[^\W\d_])")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text and its maps. Lines end at \\r\\n, \\n or \\r and nowhere else."""

    text: str
    encoding: str
    first_byte: int
    """Length of the byte order mark."""
    total_bytes: int
    _raw: str = field(repr=False)
    """The text before replacing: encodes to the very bytes it came from."""
    _steps: array[int] = field(repr=False)
    _line_starts: array[int] = field(repr=False)

    def byte_at(self, char: int) -> int:
        """Byte offset in the file of the character at `char`; the file's length at the end of the text."""
        if char >= len(self.text):
            return self.total_bytes
        step = char // _STEP_CHARS
        return self._steps[step] + _encoded_length(self._raw[step * _STEP_CHARS : char], self.encoding)

    def line_at(self, char: int) -> int:
        """1-based line that holds the character at `char`."""
        return bisect_right(self._line_starts, char)

    @property
    def line_starts(self) -> array[int]:
        """Character offset of each line's first character."""
        return self._line_starts


def decode(data: bytes) -> Decoded | None:
    """Decode a file; None if it is binary. Linear in its length."""
    encoding, first_byte = _encoding_of(data)
    if encoding is None:
        return None
    raw = _decode_exactly(data[first_byte:], encoding)
    if _looks_binary(raw) or (encoding.startswith("utf-16") and _lone_surrogates(raw) > 0.01 * len(raw) + 1):
        return None
    return mapped(raw, encoding, first_byte, len(data))


def canonical(text: str) -> Decoded:
    """The maps of a canonical text: offsets are those of its UTF-8 form."""
    clean = _SURROGATE.sub("\ufffd", text).replace("\x00", " ")
    return mapped(clean, "utf-8", 0, len(clean.encode()))


def mapped(raw: str, encoding: str, first_byte: int, total_bytes: int) -> Decoded:
    """Build the maps of a text that `encoding` encodes back to the bytes it came from."""
    steps = array("Q", [first_byte])
    for start in range(0, len(raw), _STEP_CHARS):
        steps.append(steps[-1] + _encoded_length(raw[start : start + _STEP_CHARS], encoding))
    text = _SURROGATE.sub("\ufffd", raw).replace("\x00", " ")
    line_starts = array("Q", [0])
    line_starts.extend(match.end() for match in _LINE_END.finditer(text))
    return Decoded(text, encoding, first_byte, total_bytes, raw, steps, line_starts)


def unified_newlines(text: str) -> str:
    """`text` with \\n for every line end: the form that is embedded and hashed."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _encoding_of(data: bytes) -> tuple[str | None, int]:
    """Encoding and the length of its byte order mark; None for bytes that are no text."""
    for mark, encoding in _BOMS:
        if data.startswith(mark) and (len(mark) < 4 or len(data) % 4 == 0):
            return encoding, len(mark)
    if data.isascii() and b"\x00" not in data:
        return "utf-8", 0
    wide = _wide_encoding(data[:_SAMPLE_BYTES])
    if wide is not None:
        return wide, 0
    if _mostly_utf8(data):
        return "utf-8", 0
    if _CONTROL.search(data[:_SAMPLE_BYTES].decode("latin-1")) and _looks_binary(data.decode("latin-1")):
        return None, 0
    return _guess(data), 0


def _wide_encoding(sample: bytes) -> str | None:
    """UTF-16 without a mark, by evidence: in most of its characters the same half is zero."""
    pairs = len(sample) // 2
    if pairs < 2:
        return None
    even, odd = sample[0 : 2 * pairs : 2].count(0), sample[1 : 2 * pairs : 2].count(0)
    for encoding, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros >= max(2, pairs * 0.4) and others <= pairs * 0.02:
            text = sample[: 2 * pairs].decode(encoding, "replace")
            if not _looks_binary(text) and text.count("\ufffd") <= len(text) * 0.01 + 1:
                return encoding
    return None


def _mostly_utf8(data: bytes) -> bool:
    """Whether enough multi-byte characters are valid UTF-8 to call the other bytes damage."""
    text = data.decode("utf-8", "surrogateescape")
    if text.isascii():
        return True
    invalid = _lone_surrogates(text)
    valid = len(text) - invalid - len(text.encode("ascii", "ignore"))
    return 2 * valid > invalid  # other encodings hit upon a valid sequence far more seldom


def _guess(data: bytes) -> str:
    """A legacy encoding that gives back the very same bytes, or Windows-1252, where nearly every byte is a letter.

    In Latin scripts letters beyond ASCII stand alone, or two of them among others (as in "größer"); in other scripts
    they stand together: that decides who is asked.
    """
    sample = data[:_SAMPLE_BYTES]
    high = len(sample) - len(sample.decode("latin-1").encode("ascii", "ignore"))
    runs = _HIGH_RUN.findall(sample)
    in_words = _PAIR_IN_WORD.findall(sample)
    if sum(map(len, runs)) > 0.6 * high and len(in_words) < 0.8 * len(runs):
        best = charset_normalizer.from_bytes(sample, cp_isolation=_FAR_ENCODINGS, preemptive_behaviour=False).best()
        if best is not None and _gives_back(data, best.encoding):
            return best.encoding
    western, central = (len(_SYMBOL_IN_WORD.findall(sample.decode(name, "replace"))) for name in ("cp1252", "cp1250"))
    only_central = _has_gaps(sample, "cp1252") and not _has_gaps(sample, "cp1250")
    return "cp1250" if only_central or (western > 2 and 4 * central <= western) else "cp1252"


def _has_gaps(sample: bytes, encoding: str) -> bool:
    """Whether it holds bytes that stand for nothing in this encoding."""
    return "\ufffd" in sample.decode(encoding, "replace")


def _gives_back(data: bytes, encoding: str) -> bool:
    try:
        return data.decode(encoding).encode(encoding) == data
    except UnicodeError:
        return False


def _decode_exactly(data: bytes, encoding: str) -> str:
    """Decode so that `_encoded_length` of any slice is the length of the bytes it came from."""
    if encoding == "utf-8":
        return data.decode("utf-8", "surrogateescape")
    if encoding in ("cp1250", "cp1252"):
        return data.decode(encoding, "surrogateescape")
    if encoding.startswith(("utf-16", "utf-32")):
        width = 2 if encoding.startswith("utf-16") else 4
        whole = len(data) - len(data) % width
        text = data[:whole].decode(encoding, "surrogatepass" if width == 2 else "replace")
        return text + "\ufffd" if whole < len(data) else text
    return data.decode(encoding)


def _encoded_length(raw: str, encoding: str) -> int:
    if encoding.startswith("utf-32"):
        return 4 * len(raw)
    if encoding.startswith("utf-16"):
        return len(raw.encode(encoding, "surrogatepass"))
    return len(raw.encode(encoding, "surrogateescape"))


def _lone_surrogates(raw: str) -> int:
    return sum(1 for _ in _SURROGATE.finditer(raw))


def _looks_binary(text: str) -> bool:
    """Control characters are rare in text, even in logs and in extracted text with a stray NUL."""
    sample = text if len(text) <= 4 * _SAMPLE_BYTES else text[: 2 * _SAMPLE_BYTES] + text[-2 * _SAMPLE_BYTES :]
    controls = len(_CONTROL.findall(sample))
    return controls > 3 and controls > 0.02 * len(sample)
