"""Bytes to text and back: encodings by evidence, exact maps, binary by content."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragd.chunkers.decode import canonical, decode


@pytest.mark.parametrize(
    ("data", "text", "encoding"),
    [
        (b"caf\xe9 zqx", "café zqx", "cp1252"),
        ("héllo zqy".encode("utf-16"), "héllo zqy", "utf-16-le"),
        ("héllo zqy".encode("utf-16-le"), "héllo zqy", "utf-16-le"),
        ("héllo zqy".encode("utf-16-be"), "héllo zqy", "utf-16-be"),
        (b"\xef\xbb\xbfName", "Name", "utf-8"),
        ("héllo".encode("utf-32"), "héllo", "utf-32-le"),
        (b"", "", "utf-8"),
    ],
)
def test_fault_b8_text_that_is_not_utf8_is_read(data: bytes, text: str, encoding: str) -> None:
    decoded = decode(data)
    assert decoded is not None
    assert (decoded.text, decoded.encoding) == (text, encoding)


def test_fault_b8_random_bytes_are_binary() -> None:
    assert decode(random.Random(1).randbytes(4096)) is None
    assert decode(b"\xff\xfe" + random.Random(2).randbytes(4096)) is None


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Привет мир, это текст на русском языке о погоде и природе. " * 2, "cp1251"),
        ("日本語テキストです。これは文字コードのテストです。" * 3, "shift_jis"),
        ("日本語テキストです。これは文字コードのテストです。" * 3, "euc_jp"),
        ("你好世界，这是一个测试。" * 5, "gb18030"),
        ("안녕하세요 세계 여러분 반갑습니다. " * 4, "cp949"),
        ("Die Größe des Gebäudes überrascht, schöne Grüße aus München. " * 3, "latin-1"),
        ("Le général a été très étonné de voir la forêt brûler. " * 3, "cp1252"),
        ("Zażółć gęślą jaźń. Wczoraj wieczorem poszliśmy do kina, żeby obejrzeć film. " * 3, "cp1250"),
    ],
)
def test_legacy_encodings_are_told_apart(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding))
    assert decoded is not None
    assert decoded.text == text


def test_fault_b15_a_nul_becomes_a_blank_of_the_same_length() -> None:
    decoded = decode(b"alpha\x00beta zqx")
    assert decoded is not None
    assert decoded.text == "alpha beta zqx"
    assert decoded.byte_at(decoded.text.index("zqx")) == 11


def test_invalid_bytes_become_one_character_each_with_exact_positions() -> None:
    data = "é and ".encode() + b"\xff\xe2\x82" + " 温度 end".encode()
    decoded = decode(data)
    assert decoded is not None
    assert decoded.text == "é and \ufffd\ufffd\ufffd 温度 end"
    assert data[decoded.byte_at(decoded.text.index("温")) :] == "温度 end".encode()


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00\ufeff"), max_size=200))
def test_every_slice_of_utf8_maps_to_its_own_bytes(text: str) -> None:
    data = text.encode()
    decoded = decode(data)
    if decoded is None or decoded.encoding != "utf-8":
        return
    for start in range(0, len(text), 7):
        end = min(len(text), start + 5)
        assert data[decoded.byte_at(start) : decoded.byte_at(end)].decode() == text[start:end]


@given(st.binary(max_size=200), st.sampled_from([b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"]))
def test_the_map_is_total_and_rising_for_any_bytes(data: bytes, mark: bytes) -> None:
    decoded = decode(mark + data)
    if decoded is None:
        return
    offsets = [decoded.byte_at(index) for index in range(len(decoded.text) + 1)]
    assert offsets == sorted(set(offsets)) or not decoded.text
    assert offsets[-1] == len(mark + data)
    assert "\x00" not in decoded.text
    assert not any(0xD800 <= ord(char) < 0xE000 for char in decoded.text)


def test_the_map_crosses_many_steps() -> None:
    text = "aé温🧪" * 5000
    data = text.encode()
    decoded = decode(data)
    assert decoded is not None
    for index in range(0, len(text), 997):
        assert data[decoded.byte_at(index) :].decode() == text[index:]


def test_lines_end_at_crlf_lf_and_cr_only() -> None:
    text = "one\r\ntwo\nthree\rfour\u2028still four\x0b\x0c\x85still\n"
    decoded = decode(text.encode())
    assert decoded is not None
    assert decoded.line_at(text.index("two")) == 2
    assert decoded.line_at(text.index("three")) == 3
    assert decoded.line_at(text.index("four")) == 4
    assert decoded.line_at(text.rindex("still")) == 4


def test_a_canonical_text_is_cleaned_at_the_same_length() -> None:
    maps = canonical("a\x00b\ud800é")
    assert maps.text == "a b\ufffdé"
    assert maps.total_bytes == len(maps.text.encode())
