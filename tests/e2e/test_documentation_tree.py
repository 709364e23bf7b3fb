"""The main job with nothing faked: the real daemon, the real model, a real documentation tree.

More than 300 files of celery's source distribution are indexed once; then they are asked about, edited, renamed,
deleted, and the daemon is killed. Each test leaves the files that the others ask about as they were.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from typing import Any

import anyio
import docs_kit
import pytest
from docs_kit import QUESTIONS, Question
from library_kit import K, Library, seconds_until
from ragd_kit import Ragd

pytestmark = [pytest.mark.process, pytest.mark.chroma, pytest.mark.model, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    archive = docs_kit.archive()
    ragd = Ragd(tmp_path_factory.mktemp("tree") / "ragd")
    ragd.configure(model=None)
    made = Library(ragd, docs_kit.unpack(archive, ragd.docs))
    assert not any(ragd.home.iterdir()), "nothing of this user may be needed"
    began = time.monotonic()
    try:
        ragd.start()
        made.ready_s = time.monotonic() - began
        ragd.wait_idle(1200)
        made.indexed_s = time.monotonic() - began
        made.answers = {question.text: ragd.search(question.text, k=K) for question in QUESTIONS}
        yield made
        said = "".join(life.said() for life in ragd.lives)
        assert "Traceback" not in said, said[-5000:]
        assert ragd.daemon.stop() == 0
        assert ragd.processes() == []
    finally:
        ragd.clear_away()


def test_the_whole_tree_is_in(library: Library) -> None:
    status = library.ragd.status()
    assert len(library.texts) >= 300
    assert (status["state"], status["failed"], status["skipped"], status["problems"]) == ("idle", 0, 0, [])
    [root] = status["roots"]
    assert (root["files"], root["watch"]) == (len(library.texts), "native")
    assert 1000 <= status["chunks"] == root["chunks"] <= 2000
    assert status["embedded"]["texts"] <= status["chunks"], "a text was embedded twice"
    kinds = library.must_hold_what_the_files_say()
    assert kinds.total() == status["chunks"]
    rate = status["embedded"]["texts"] / library.indexed_s
    print(
        f"\n{len(library.texts)} files, {status['chunks']} chunks, {status['embedded']['tokens']} tokens; "
        f"ready after {library.ready_s:.1f} s, indexed after {library.indexed_s:.0f} s ({rate:.0f} texts/s); "
        f"chunks by ending: {dict(kinds.most_common())}"
    )


def test_why_names_every_file(library: Library) -> None:
    chunks = 0
    for rel in library.rels:
        why = library.ragd.ask("GET", "/v1/why", path=str(library.path(rel)))
        reason = docs_kit.reason_to_ignore(rel)
        assert (why["state"], why["reason"]) == ("indexed" if reason is None else "ignored", reason), why
        chunks += why.get("chunks") or 0
    assert chunks == library.ragd.status()["chunks"]


def test_natural_questions_find_their_passage(library: Library) -> None:
    """Recall at five hits: the file, and the very line."""
    found = {mode: _recall(library, mode) for mode in ("hybrid", "dense", "lexical")}
    for mode, (files, passages) in found.items():
        print(f"\n{mode}: file {files}/{len(QUESTIONS)}, passage {passages}/{len(QUESTIONS)}", end="")
    files, passages = found["hybrid"]
    assert files >= 0.9 * len(QUESTIONS)
    assert passages >= 0.7 * len(QUESTIONS)
    for mode in ("dense", "lexical"):
        assert files >= found[mode][0], f"{mode} alone finds more files than both together"


def _recall(library: Library, mode: str) -> tuple[int, int]:
    """Questions whose file, and whose passage, is among the hits. The ones missed are printed."""
    files = passages = 0
    for question in QUESTIONS:
        assert question.quote in library.path(question.rel).read_text(encoding="utf-8"), question
        hits = [hit for hit in library.ragd.search(question.text, mode, K) if hit["rel"] == question.rel]
        files += bool(hits)
        if any(question.is_answered_by(hit["text"]) for hit in hits):
            passages += 1
        elif mode == "hybrid":
            print(f"\nmissed {'the passage' if hits else 'the file'}: {question.text!r}", end="")
    return files, passages


def test_fault_g1_hits_are_different_passages(library: Library) -> None:
    for question, hits in library.answers.items():
        assert len(hits) == K, question
        assert len({hit["text"].strip() for hit in hits}) == K, question
        assert [hit["score"] for hit in hits] == sorted((hit["score"] for hit in hits), reverse=True)
        for one in hits:
            for other in hits:
                if one is other or one["rel"] != other["rel"]:
                    continue
                common = min(one["end_line"], other["end_line"]) - max(one["start_line"], other["start_line"]) + 1
                shorter = min(one["end_line"] - one["start_line"], other["end_line"] - other["start_line"]) + 1
                assert common <= max(1, shorter / 2), (question, one["rel"], one["start_line"], other["start_line"])


def test_fault_g1_a_copy_is_one_hit_that_names_both_places(library: Library) -> None:
    source = library.path("docs/userguide/debugging.rst")
    copy = library.path("copies/debugging.rst")
    query = "enable the break-point signal with an environment variable"
    embedded = library.embedded()
    copy.parent.mkdir()
    try:
        copy.write_bytes(source.read_bytes())
        library.ragd.wait_idle()
        hits = library.ragd.search(query)
        [hit] = [hit for hit in hits if "Enabling the break-point signal" in hit["text"]]
        [other] = hit["also_at"]
        assert {hit["path"], other["path"]} == {str(source), str(copy)}
        assert (other["start_line"], other["end_line"]) == (hit["start_line"], hit["end_line"])
        assert len(hits) == K
        assert library.embedded() == embedded
    finally:
        copy.unlink()
        copy.parent.rmdir()
    library.ragd.wait_idle()
    assert all(hit["also_at"] == [] for hit in library.ragd.search(query) if hit["rel"].endswith("debugging.rst"))


def test_fault_g2_lines_are_those_of_the_file(library: Library) -> None:
    """The text of a hit is what stands in its lines, and `get` of these lines gives it again."""
    seen = at_lines = 0
    for hit in (hit for hits in library.answers.values() for hit in hits):
        if hit["type"] == "html":
            continue  # its text is not the file's
        seen += 1
        lines = library.path(hit["rel"]).read_text(encoding="utf-8").splitlines(keepends=True)
        there = "".join(lines[hit["start_line"] - 1 : hit["end_line"]])
        assert hit["path"] == str(library.path(hit["rel"]))
        assert hit["text"].strip() in there
        got = library.ragd.ask("GET", "/v1/get", path=f"{hit['path']}:{hit['start_line']}-{hit['end_line']}")
        assert (got["start_line"], got["end_line"]) == (hit["start_line"], hit["end_line"])
        assert got["text"].strip("\n") == there.strip("\n")
        assert library.ragd.ask("GET", "/v1/get", id=hit["id"])["text"] == hit["text"]
        at_lines += hit["text"].strip() == there.strip()
    assert seen > 100
    assert at_lines >= 0.95 * seen, "texts are cut within their lines"


def test_an_edit_is_found_and_what_it_replaced_is_gone(library: Library) -> None:
    path = library.path("docs/getting-started/backends-and-brokers/gcpubsub.rst")
    before = path.read_text(encoding="utf-8")
    old = "The pubsub messages and subscriptions are set to expire after 24 hours, and can be set"
    new = "Messages that nobody fetched are thrown away after nine lunar months, zqlunar, and can be set"
    assert before.count(old) == 1
    embedded = library.embedded()
    try:
        path.write_text(before.replace(old, new), encoding="utf-8")
        took_s = seconds_until(lambda: library.is_found("zqlunar"))
        text = library.only_hit("zqlunar")["text"]
        assert new in text
        assert library.ragd.search(text, "dense", k=1)[0]["text"] == text, "its vector is not there"
        for mode in ("dense", "lexical"):
            assert not any(old in hit["text"] for hit in library.ragd.search(old, mode, k=20))
        texts = library.embedded() - embedded
        assert 1 <= texts <= 8
        print(f"\nan edit: found after {took_s:.1f} s, {texts} texts embedded")
    finally:
        beside = path.with_name(".gcpubsub.rst.tmp")
        beside.write_text(before, encoding="utf-8")
        os.replace(beside, path)  # fault C1: saved by a rename
    seconds_until(lambda: not library.is_found("zqlunar"))
    assert any(old in hit["text"] for hit in library.ragd.search(old))
    assert library.embedded() - embedded == texts, "what was there before was embedded again"


def test_a_renamed_folder_moves_without_embedding(library: Library) -> None:
    here, there = "docs/userguide/", "docs/handbook/"
    asked = [question for question in QUESTIONS if question.rel.startswith(here)]
    assert len(asked) >= 8
    embedded, chunks = library.embedded(), library.ragd.status()["chunks"]
    os.rename(library.path(here), library.path(there))
    try:
        took_s = seconds_until(lambda: _folders(library, asked[:1]) == {there})
        library.ragd.wait_idle()
        for question in asked:
            hits = library.ragd.search(question.text)
            before = library.answers[question.text]
            assert [hit["rel"].replace(there, here) for hit in hits] == [hit["rel"] for hit in before]
            assert [hit["text"] for hit in hits] == [hit["text"] for hit in before]
        print(
            f"\na folder of {len(list(library.path(there).rglob('*.rst')))} files renamed: moved after {took_s:.1f} s"
        )
        assert library.ragd.status()["chunks"] == chunks
        assert library.ragd.cli("get", str(library.path(here) / "workers.rst")).returncode == 9
    finally:
        os.rename(library.path(there), library.path(here))
    library.ragd.wait_idle()
    assert _folders(library, asked) == {here}
    assert library.embedded() == embedded


def _folders(library: Library, asked: list[Question]) -> set[str]:
    """The folders, of the two that the rename is about, that hits lie in."""
    rels = [rel for question in asked for rel in library.rels_of(question.text)]
    return {folder for folder in ("docs/userguide/", "docs/handbook/") if any(rel.startswith(folder) for rel in rels)}


def test_deleted_files_are_gone(library: Library) -> None:
    folder = library.path("examples/stamping")
    names = {f"examples/stamping/{path.name}": path.read_bytes() for path in folder.iterdir()}
    query = "revoke the last task of a workflow by its stamped header"
    assert set(library.rels_of(query)) & names.keys()
    chunks = library.ragd.status()["chunks"]
    try:
        for rel in names:
            library.path(rel).unlink()
        folder.rmdir()
        took_s = seconds_until(lambda: not set(library.rels_of(query, k=50)) & names.keys())
        print(f"\n{len(names)} files deleted: gone after {took_s:.1f} s")
        library.ragd.wait_idle()
        assert library.ragd.status()["chunks"] < chunks
        for rel in names:
            assert library.ragd.cli("get", str(library.path(rel))).returncode == 9
    finally:
        folder.mkdir(exist_ok=True)
        for rel, data in names.items():
            library.path(rel).write_bytes(data)
    library.ragd.wait_idle()
    assert set(library.rels_of(query)) & names.keys()
    assert library.ragd.status()["chunks"] == chunks


def test_faults_a_and_b_files_of_every_kind(library: Library) -> None:
    """What people have in such folders beside well-behaved documentation."""
    folder, good, leftovers = library.path("added"), docs_kit.GOOD_FILES, docs_kit.LEFTOVERS
    folder.mkdir()
    chunks = library.ragd.status()["chunks"]
    try:
        for name, data in good.items():
            (folder / name).write_bytes(data)
        for name in leftovers:
            (folder / name).write_bytes(b"zqleftover\n")
        (folder / "noise.txt").write_bytes(bytes(range(256)) * 16)
        seconds_until(lambda: library.is_found("zqspecial"))
        status = library.ragd.wait_idle()
        assert (status["failed"], status["skipped"]) == (0, 1)
        assert not library.is_found("zqleftover")
        states = {name: library.why(folder / name) for name in (*good, *leftovers, "noise.txt")}
        assert states["noise.txt"] == ("skipped", "binary")
        assert {states[name] for name in good} == {("indexed", None)}
        assert {states[name] for name in leftovers} == {("ignored", "builtin")}

        hit = library.only_hit("zqcrlf")
        assert (hit["section"][0], hit["start_line"]) == ("Setup", 4)
        assert library.only_hit("zqfence")["section"] == ["Setup"]
        for key in ("k000", "k060", "k119"):
            hit = library.only_hit(key)
            shown = library.ragd.ask("POST", "/v1/preview", path=hit["path"])
            [cut] = [chunk for chunk in shown["chunks"] if chunk["id"] == hit["id"]]
            assert "key" in cut["embedded_text"].split(key)[0]
            assert "limit" in cut["embedded_text"].split(key)[0]
        assert "\ufeff" not in library.only_hit("zqbom")["text"]
        hit = library.only_hit("zqa")
        assert "zqb" in hit["text"]
        assert (hit["start_line"], hit["end_line"]) == (2, 3)
        assert "café zqlatin" in library.only_hit("zqlatin")["text"]
        for word in ("zqwide", "zqblind"):
            assert f"héllo {word}" in library.only_hit(word)["text"]
        assert "\0" not in library.only_hit("zqnul")["text"]
        assert "<|endoftext|> and [SEP]" in library.only_hit("zqspecial")["text"]

        # G2: behind front matter, CRLF and characters of several bytes, in every way to ask
        hit = library.only_hit("zqline")
        first, last = hit["start_line"], hit["end_line"]
        assert first <= 137 <= last
        assert hit["text"].splitlines() == docs_kit.LONG[first - 1 : last]
        line = library.ragd.ask("GET", "/v1/get", path=f"{hit['path']}:137-137")["text"]
        assert line.strip() == docs_kit.LONG[136]
        told = json.loads(library.ragd.cli("--json", "search", "zqline", "--mode", "lexical", "-k", "1").stdout)
        assert (told["hits"][0]["start_line"], told["hits"][0]["end_line"]) == (first, last)

        # F1: shorter, then empty
        (folder / "windows.md").write_bytes(b"# Setup\r\n\r\nNothing of it is left, zqshort.\r\n")
        seconds_until(lambda: library.is_found("zqshort"))
        assert not library.is_found("zqcrlf")
        (folder / "windows.md").write_bytes(b"")
        seconds_until(lambda: not library.is_found("zqshort"))
        assert library.why(folder / "windows.md") == ("indexed", None)
    finally:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    library.ragd.wait_idle()
    assert library.ragd.status()["chunks"] == chunks


def test_a_command_that_asks_loads_neither_torch_nor_chroma(library: Library) -> None:
    library.ragd.env["PYTHONPROFILEIMPORTTIME"] = "1"
    try:
        asked = [library.ragd.cli("status"), library.ragd.cli("search", QUESTIONS[0].text)]
    finally:
        del library.ragd.env["PYTHONPROFILEIMPORTTIME"]
    for done in asked:
        assert done.returncode == 0, done.stderr[-2000:]
        loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
        assert {"ragd", "httpx"} <= loaded
        assert loaded & {"torch", "chromadb", "sentence_transformers", "transformers", "numpy", "apsw"} == set()
    assert f"{len(library.texts)}" in asked[0].stdout


def test_an_assistant_asks_over_mcp(library: Library) -> None:
    """The official SDK's client and `ragd mcp`, which asks the daemon that runs."""
    question = next(question for question in QUESTIONS if "Kafka" in question.text)

    async def ask() -> None:
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        command, *arguments = library.ragd.command("mcp")
        server = StdioServerParameters(
            command=command, args=arguments, env=library.ragd.environment(), cwd=library.ragd.elsewhere
        )
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            told = await session.initialize()
            assert "never instructions" in (told.instructions or "")
            tools = (await session.list_tools()).tools
            assert [tool.name for tool in tools] == ["search", "get", "status", "sync"]

            async def call(name: str, **parameters: Any) -> dict[str, Any]:
                result = await session.call_tool(name, parameters)
                assert not result.is_error, result.content
                assert isinstance(result.structured_content, dict)
                return result.structured_content

            hits = (await call("search", query=question.text, k=3))["hits"]
            assert len(hits) == 3
            hit = next(hit for hit in hits if hit["rel"] == question.rel)
            assert hit["citation"] == f"{library.path(question.rel)}:{hit['start_line']}-{hit['end_line']}"
            assert question.is_answered_by(hit["text"])
            got = await call("get", path=hit["citation"])
            assert (got["citation"], got["text"].strip("\n")) == (hit["citation"], hit["text"].strip("\n"))
            status = await call("status")
            assert (status["state"], status["chunks"]) == ("idle", library.ragd.status()["chunks"])
            synced = await call("sync", paths=[str(library.path("docs"))])
            assert synced["files"]["failed"] == synced["files"]["indexed"] == 0
            assert synced["files"]["unchanged"] > 200
            refused = await session.call_tool("get", {"path": "/etc/hostname"})
            assert refused.is_error

    anyio.run(ask)


def test_a_killed_daemon_answers_the_same_and_embeds_nothing(library: Library) -> None:
    before = {question.text: library.ragd.search(question.text) for question in QUESTIONS}
    library.ragd.daemon.kill()
    library.start()
    assert library.embedded() == 0
    after = {question.text: library.ragd.search(question.text) for question in QUESTIONS}
    for question, hits in before.items():
        assert [hit["id"] for hit in after[question]] == [hit["id"] for hit in hits], question
        assert [hit["text"] for hit in after[question]] == [hit["text"] for hit in hits], question
    library.must_hold_what_the_files_say()


def test_fault_f2_what_happened_while_the_daemon_was_off(library: Library) -> None:
    deleted, edited = library.path("docs/community.rst"), library.path("docs/copyright.rst")
    before = {path: path.read_bytes() for path in (deleted, edited)}
    assert library.ragd.daemon.stop() == 0
    try:
        deleted.unlink()
        edited.write_bytes(before[edited] + b"\nIt was printed on waxed paper, zqwaxed.\n")
        library.start()
        assert library.only_hit("zqwaxed")["rel"] == "docs/copyright.rst"
        assert "docs/community.rst" not in library.rels_of("community resources and mailing list", k=50)
        assert library.ragd.cli("get", str(deleted)).returncode == 9
        assert 1 <= library.embedded() <= 4
    finally:
        for path, data in before.items():
            path.write_bytes(data)
    library.ragd.wait_idle()
    library.must_hold_what_the_files_say()
