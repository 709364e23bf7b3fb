"""One gitignore pattern to one regular expression over bytes.

What must stay true: the expression matches exactly what git's matcher matches (git works on bytes), and a
match takes polynomial time whatever the pattern: patterns come from other people's repositories.

pathspec's translation is not used: on random patterns it differed from git in one file of four (POSIX
classes, `a**/b`, names in brackets) and raised for some lines that git takes, it works on text, and its
expressions backtrack. Here the shortest match after a `*` is final (an atomic group), except after the last
one: what follows another star can only gain from an earlier end.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from itertools import pairwise

_SPECIAL = re.compile(rb"[*?\[\\]")
_STAR, _ANY, _ANY_FOLDERS = "*", "**", "**/"
Token = bytes | str
"""A regular expression for exactly one byte, or one of the stars."""


def is_literal(pattern: bytes) -> bool:
    return not _SPECIAL.search(pattern)


def translate(pattern: bytes, *, by_name: bool) -> bytes | None:
    """A regular expression for the whole of a name (`by_name`) or of a path; None when it can match
    nothing."""
    if not by_name and pattern.startswith(b"/"):
        pattern = pattern[1:]
    special = _SPECIAL.search(pattern)
    literal = special.start() if special else len(pattern)
    tokens = _tokens(pattern, literal, by_name=by_name)
    if tokens is None:
        return None
    return re.escape(pattern[:literal]) + _regex(tokens) + rb"\Z"


def _tokens(pattern: bytes, start: int, *, by_name: bool) -> list[Token] | None:
    """git matches what stands before the first special byte apart from the rest, so a `**` that comes first
    in the rest counts as one that begins the pattern: `a**/b` matches `a/x/b`, and `ab` too."""
    tokens: list[Token] = []
    place = start
    while place < len(pattern):
        byte = pattern[place : place + 1]
        if byte == b"*":
            end = place
            while pattern[end : end + 1] == b"*":
                end += 1
            place = _star(pattern, place, end, start, tokens, by_name=by_name)
        elif byte == b"?":
            tokens.append(b"." if by_name else b"[^/]")
            place += 1
        elif byte == b"[":
            read = _class(pattern, place + 1)
            if read is None:
                return None
            members, place = read
            tokens.append(_byte_set(members if by_name else members - {0x2F}))
        elif byte == b"\\":
            if place + 1 == len(pattern):
                return None
            tokens.append(re.escape(pattern[place + 1 : place + 2]))
            place += 2
        else:
            tokens.append(re.escape(byte))
            place += 1
    return tokens


def _star(pattern: bytes, place: int, end: int, start: int, tokens: list[Token], *, by_name: bool) -> int:
    """Read the stars from `place` to `end`; returns where to read on."""
    rest = pattern[end : end + 2]
    begins = place == start or pattern[place - 1 : place] == b"/"
    ends = rest == b"" or rest[:1] == b"/" or rest == b"\\/"
    if by_name:
        tokens.append(_ANY)
    elif end - place >= 2 and begins and ends:
        if rest[:1] == b"/":
            tokens.append(_ANY_FOLDERS)
            return end + 1
        tokens.append(_ANY)
    else:
        tokens.append(_STAR)
    return end


_POSIX_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, [*range(32), 127])),
    "digit": string.digits,
    "graph": string.ascii_letters + string.digits + string.punctuation,
    "lower": string.ascii_lowercase,
    "print": string.ascii_letters + string.digits + string.punctuation + " ",
    "punct": string.punctuation,
    "space": string.whitespace,
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}


def _class(pattern: bytes, place: int) -> tuple[set[int], int] | None:
    """The members of a bracket expression whose `[` stands before `place`, and where it ends; None when
    malformed."""
    negated = pattern[place : place + 1] in (b"!", b"^")
    place += negated
    members: set[int] = set()
    previous: int | None = None
    first = True
    while first or pattern[place : place + 1] != b"]":
        first = False
        if place >= len(pattern):
            return None
        byte = pattern[place]
        if byte == 0x5C:  # backslash
            place += 1
            if place >= len(pattern):
                return None
            previous = pattern[place]
            members.add(previous)
        elif byte == 0x2D and previous is not None and pattern[place + 1 : place + 2] not in (b"", b"]"):
            place += 1
            if pattern[place] == 0x5C:
                place += 1
                if place >= len(pattern):
                    return None
            members.update(range(previous, pattern[place] + 1))
            previous = None
        elif pattern[place : place + 2] == b"[:":
            close = pattern.find(b"]", place + 2)
            if close < 0:
                return None
            if close == place + 2 or pattern[close - 1 : close] != b":" or close - 1 < place + 2:
                members.add(0x5B)
                previous = 0x5B
            else:
                named = _POSIX_CLASSES.get(pattern[place + 2 : close - 1].decode("latin-1"))
                if named is None:
                    return None
                members.update(named.encode("ascii"))
                previous = None
                place = close
        else:
            members.add(byte)
            previous = byte
        place += 1
    return (set(range(256)) - members if negated else members), place + 1


def _byte_set(members: set[int]) -> bytes:
    if not members:
        return b"(?!)"
    return b"[" + b"".join(b"\\x%02x" % byte for byte in sorted(members)) + b"]"


def _regex(tokens: Sequence[Token]) -> bytes:
    """Join tokens; see the module's docstring for the atomic groups. Pieces between stars are matched at the
    first place they fit, except after the last star, where the piece must reach the end."""
    stars = {_STAR: b"[^/]*", _ANY: b".*", _ANY_FOLDERS: b"(?:.*/)?"}
    lazy = {_STAR: b"[^/]*?", _ANY: b".*?", _ANY_FOLDERS: b"(?:|.*?/)"}
    wide = [place for place, token in enumerate(tokens) if token in (_ANY, _ANY_FOLDERS)]
    out: list[bytes] = []
    bounds = [0, *wide, len(tokens)]
    for number, (start, end) in enumerate(pairwise(bounds)):
        group = tokens[start:end]
        last = number == len(bounds) - 2
        opened = bool(group) and group[0] in (_ANY, _ANY_FOLDERS)
        piece = _group(group[1:] if opened else group, last=last, star=stars[_STAR], lazy=lazy[_STAR])
        if not opened:
            out.append(piece)
        elif last:
            out.append(stars[str(group[0])] + piece)
        else:
            out.append(b"(?>" + lazy[str(group[0])] + piece + b")")
    return b"".join(out)


def _group(tokens: Sequence[Token], *, last: bool, star: bytes, lazy: bytes) -> bytes:
    """Bytes and single stars. Only in the last group must the end of the text be reached."""
    pieces: list[list[bytes]] = [[]]
    for token in tokens:
        if isinstance(token, str):
            pieces.append([])
        else:
            pieces[-1].append(token)
    out = b"".join(pieces[0])
    for number, piece in enumerate(pieces[1:], 1):
        if last and number == len(pieces) - 1:
            out += star + b"".join(piece)
        else:
            out += b"(?>" + lazy + b"".join(piece) + b")"
    return out
