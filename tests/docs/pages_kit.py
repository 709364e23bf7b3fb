"""What the pages say, in pieces that can be compared: fences with their markers, code spans, tables, links.

Loaded by conftest.py under the name `pages_kit`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from ragd.daemon.cli.main import cli

HOUSE = Path(__file__).resolve().parents[2]
PAGES = [HOUSE / "README.md", HOUSE / "CHANGELOG.md", *sorted((HOUSE / "docs").glob("*.md"))]
ROOMS = ("chunkers", "store", "daemon")
COMMON_OPTIONS = frozenset({"--config", "--json", "-h", "--help"})

_FENCE = re.compile(
    r"(?:^<!-- (?P<marker>[^\n]*?) -->\n+)?^(?P<ticks>```+)(?P<language>[^\n]*)\n(?P<body>.*?)^(?P=ticks)$", re.M | re.S
)
_SPAN = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^(#{1,6}) (.+)$", re.M)


@dataclass(frozen=True, slots=True)
class Fence:
    """A fenced block. `marker` is what the comment right above it says, or ""."""

    page: Path
    line: int
    language: str
    marker: str
    body: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(HOUSE)}:{self.line}"


def page(name: str) -> Path:
    return HOUSE / name


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def fences(*languages: str) -> list[Fence]:
    """Every fence of these languages (of all, without any) on every page."""
    found = []
    for path in PAGES:
        text = text_of(path)
        for match in _FENCE.finditer(text):
            line = text.count("\n", 0, match.start("ticks")) + 1
            fence = Fence(path, line, match["language"].strip(), match["marker"] or "", match["body"])
            if not languages or fence.language in languages:
                found.append(fence)
    return found


def prose_of(path: Path) -> str:
    """The page without its fences."""
    return _FENCE.sub("", text_of(path))


def spans_of(text: str) -> list[str]:
    """Code spans, each on one line."""
    return [" ".join(span.split()) for span in _SPAN.findall(text)]


def links_of(path: Path) -> list[str]:
    return _LINK.findall(prose_of(path))


def anchors_of(path: Path) -> set[str]:
    """The anchors that GitHub gives to headings."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for _, heading in _HEADING.findall(prose_of(path))
    }


def section_of(path: Path, heading: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    text = text_of(path)
    for match in _HEADING.finditer(text):
        if match[2] == heading:
            end = re.compile(rf"^#{{1,{len(match[1])}}} ", re.M).search(text, match.end())
            return text[match.end() : end.start() if end else len(text)]
    raise AssertionError(f"{path.name} has no heading {heading!r}")


def rows_of(text: str) -> list[list[str]]:
    """The cells of every table row, heading rows and delimiter rows left out."""
    rows = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        is_heading = number + 1 < len(lines) and re.match(r"\|[-|: ]+\|$", lines[number + 1])
        if line.startswith("|") and not is_heading and not re.match(r"\|[-|: ]+\|$", line):
            rows.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return rows


# --- the command line ----------------------------------------------------------------------------------


def leaves(
    command: click.Command = cli, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that does something, with the words that call it."""
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(below, (*words, name))


def options_of(command: click.Command) -> set[str]:
    """The names of its own options."""
    named = {name for option in command.params if isinstance(option, click.Option) for name in option.opts}
    return named - COMMON_OPTIONS


def all_options() -> set[str]:
    return set().union(*(options_of(command) for _, command in leaves())) | options_of(cli) | COMMON_OPTIONS


def typed(fence: Fence) -> str:
    """What a person types: of a transcript the lines after the prompt."""
    if fence.language != "console":
        return fence.body
    return "\n".join(line.removeprefix("$ ") for line in fence.body.splitlines() if line.startswith("$ "))


def calls_in(script: str) -> Iterator[list[str]]:
    """The arguments of each call of ragd in a shell script."""
    for line in script.replace("\\\n", " ").splitlines():
        call = re.search(r"(?:^|[\s(])(?:\S*/)?ragd (.*)$", line)
        if call is not None and not line.lstrip().startswith(("#", "pip", "pipx")):
            words = shlex.split(call[1], comments=True)
            yield words[: next((place for place, word in enumerate(words) if word in ("|", "&&", ";")), len(words))]


def wrong_call(words: list[str]) -> str | None:
    """Why a call could not be made: no such command, no such option. None when it could."""
    command: click.Command = cli
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word.startswith("-") and len(word) > 1:
            name = word.partition("=")[0]
            known = {
                option: parameter
                for parameter in command.params
                if isinstance(parameter, click.Option)
                for option in parameter.opts
            }
            if name in ("-h", "--help"):
                continue
            if name not in known:
                return f"{command.name} has no option {name}"
            if not known[name].is_flag and "=" not in word and waiting:
                waiting.pop(0)
        elif isinstance(command, click.Group):
            below = command.get_command(click.Context(command), word) if word.islower() else None
            if below is None:
                return f"there is no command {word!r}"
            command = below
    return None


def calls_in_prose(path: Path) -> Iterator[list[str]]:
    """The arguments of each `ragd ...` in a page's code spans, synopses included."""
    for span in spans_of(prose_of(path)):
        if span.startswith("ragd "):
            plain = re.split(r"\\?\|", span)[0].replace("...", "").replace("[", " ").replace("]", " ")
            yield plain.replace('"', " ").split()[1:]
