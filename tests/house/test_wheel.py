"""What is installed is what is here: the built wheel against the folders, and the program out of the wheel.

The wheel is built from a copy, so that no build folder of the repository can leak into it, or be left behind.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2]
ROOMS = ("chunkers", "store", "daemon")
NOT_COPIED = shutil.ignore_patterns("__pycache__", ".*", "build", "dist", "*.egg-info")

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("wheel")
    copy = base / "copy"
    shutil.copytree(HOUSE, copy, ignore=NOT_COPIED)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(base / "dist"), str(copy)],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=base,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    [built] = (base / "dist").iterdir()
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as packed:
        assert packed.testzip() is None
        return packed.namelist()


def sources() -> list[Path]:
    """Every file of the rooms, below the repository."""
    return sorted(
        path.relative_to(HOUSE)
        for room in ROOMS
        for path in (HOUSE / room).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )


def project() -> dict[str, object]:
    with (HOUSE / "pyproject.toml").open("rb") as file:
        found: dict[str, object] = tomllib.load(file)
    return found


def test_the_list_of_packages_is_the_folders_with_code() -> None:
    folders = {path.parent for path in sources() if path.name == "__init__.py"}
    assert {path.parent for path in sources() if path.suffix == ".py"} == folders, "a folder has no __init__.py"
    tool = project()["tool"]
    assert isinstance(tool, dict)
    listed = tool["setuptools"]["packages"]
    assert sorted(listed) == sorted("ragd." + ".".join(folder.parts) for folder in folders)


def test_every_file_is_in_the_wheel_and_nothing_else(names: list[str]) -> None:
    """Code, migrations, marks of types, the sample; no tests, no benchmarks, nothing that another distribution could
    also have at the top."""
    inside = sorted(name for name in names if ".dist-info/" not in name)
    assert inside == sorted(f"ragd/{path.as_posix()}" for path in sources())
    kinds = {Path(name).suffix for name in inside}
    assert {".sql", ".typed", ".md", ".csv"} <= kinds
    for room in ROOMS:
        assert f"ragd/{room}/py.typed" in inside
    assert not any("test" in name or "benchmark" in name for name in inside)


def test_the_bytes_are_those_of_the_repository(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        for path in sources():
            assert packed.read(f"ragd/{path.as_posix()}") == (HOUSE / path).read_bytes(), path


def test_the_wheel_says_what_the_project_says(wheel: Path, names: list[str]) -> None:
    [info] = {name.partition("/")[0] for name in names if ".dist-info/" in name}
    told = project()["project"]
    assert isinstance(told, dict)
    with zipfile.ZipFile(wheel) as packed:
        entry_points = packed.read(f"{info}/entry_points.txt").decode()
        metadata = Parser().parsestr(packed.read(f"{info}/METADATA").decode())
        assert packed.read(f"{info}/licenses/LICENSE") == (HOUSE / "LICENSE").read_bytes()
    assert entry_points.split() == ["[console_scripts]", "ragd", "=", "ragd.daemon.cli.main:run_program"]
    assert (metadata["Name"], metadata["Version"]) == (told["name"], told["version"])
    required = [line for line in metadata.get_all("Requires-Dist") or [] if "extra ==" not in line]
    assert len(required) == len(told["dependencies"])
    assert metadata.get_payload() == (HOUSE / "README.md").read_text(encoding="utf-8")


@pytest.mark.process
@pytest.mark.chroma
def test_the_program_works_out_of_the_wheel(wheel: Path, tmp_path: Path) -> None:
    """Indexes the sample that it brings along and finds something in it, far from the repository."""
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    config = tmp_path / "ragd.toml"
    config.write_text(
        f"[store]\npath = {json.dumps(str(tmp_path / 'state'))}\n"
        '[embedding]\nmodel = "hash:64"\n'
        f'[[root]]\npath = {json.dumps(str(site / "ragd/daemon/sample"))}\nname = "sample"\n'
    )

    def ragd(*arguments: str) -> dict[str, object]:
        program = (
            "import sys; from ragd.daemon.cli import main; "
            f"assert main.__file__.startswith({str(site)!r}), main.__file__; "
            "sys.exit(main.run_program())"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, "--config", str(config), "--json", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(site), "HOME": str(tmp_path)},
        )
        assert done.returncode == 0, done.stderr[-3000:]
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    synced = ragd("sync")
    assert synced["failures"] == []
    chunks = synced["chunks"]
    assert isinstance(chunks, dict)
    assert chunks["total"] > 5
    hits = ragd("search", "tomatoes", "--mode", "lexical")["hits"]
    assert isinstance(hits, list)
    assert hits[0]["rel"] == "growing/tomatoes.md"
