"""Tables: records and not lines, rows with their column names, and nothing of a wild file lost."""

from __future__ import annotations

import csv
import io
import sysconfig
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragd.chunkers.document import Document
from ragd.chunkers.parsers.csv_table import delimiter_of, parse
from ragd.chunkers.records import Cut
from ragd.chunkers.tokens import ModelTokenCounter


def rows_of(cut: Cut) -> list[str]:
    """The rendered rows of all chunks, in order."""
    return [
        line
        for chunk in cut.chunks
        if chunk.kind == "table-row"
        for line in chunk.embedded_text[len(chunk.prefix) :].split("\n")
    ]


def kinds(document: Document) -> list[str]:
    return [block.kind for block in document.blocks]


def test_fault_b6_byte_order_mark_and_quoted_header(tools: SimpleNamespace) -> None:
    cut = tools.laws(b'\xef\xbb\xbf"Last, First",Age\r\n"Roe, Ada",30', "people.csv")
    assert cut.metadata["columns"] == ["Last, First", "Age"]
    assert all("\ufeff" not in chunk.embedded_text + chunk.text for chunk in cut.chunks)
    assert rows_of(cut) == ["Last, First: Roe, Ada; Age: 30"]


def test_fault_b7_records_and_not_lines(tools: SimpleNamespace) -> None:
    cut = tools.laws(b'id;note\r\n1;"first zqa\r\nsecond; zqb"\r\n2;ok\r\n', "export.csv")
    assert (cut.metadata["rows"], cut.metadata["delimiter"]) == (2, ";")
    assert rows_of(cut) == ["id: 1; note: first zqa second; zqb", "id: 2; note: ok"]
    (chunk,) = [chunk for chunk in cut.chunks if "zqa" in chunk.text]
    assert "zqb" in chunk.text
    assert (chunk.start_line, chunk.end_line) == (2, 3)
    assert chunk.text == '1;"first zqa\r\nsecond; zqb"'


def test_fault_a2_every_piece_of_a_long_table_has_its_column_names(tools: SimpleNamespace) -> None:
    source = "key,unit,limit\n" + "".join(f"k{n:03},ms,{n}\n" for n in range(120))
    cut = tools.laws(source.encode(), "limits.csv", limit=128)
    assert rows_of(cut) == [f"key: k{n:03}; unit: ms; limit: {n}" for n in range(120)]
    assert len(cut.chunks) > 10


def test_fault_a10_a_long_file_name_never_pushes_out_a_row(tools: SimpleNamespace) -> None:
    cut = tools.laws(b"a,b\nshort zqx,2\n", "n" * 150 + ".csv", limit=64)
    assert "a: short zqx; b: 2" in rows_of(cut)


def test_fault_a14_line_ends_change_nothing(tools: SimpleNamespace) -> None:
    source = 'id,note\n1,"a\nb"\n2,c\n\n3,d\n'
    cuts = [tools.laws(source.replace("\n", end).encode(), "a.csv") for end in ("\n", "\r\n", "\r")]
    shapes = [[(c.id, c.start_line, c.end_line, c.embedded_text) for c in cut.chunks] for cut in cuts]
    assert shapes[0] == shapes[1] == shapes[2]


def test_law_1_the_header_is_a_chunk_of_its_own_and_a_slice_of_the_file(tools: SimpleNamespace) -> None:
    cut = tools.laws(b"Report of May\n\nid,name\n1,nails\n", "a.csv")
    assert [(chunk.kind, chunk.text) for chunk in cut.chunks] == [
        ("table-schema", "Report of May\n\nid,name"),
        ("table-row", "1,nails"),
    ]
    assert cut.chunks[1].prefix == "a\n"


def test_law_21_every_value_stands_beside_its_column(tools: SimpleNamespace) -> None:
    """The standard library's reader is the oracle."""
    rows = [[f"v{column}-{row}" if (row + column) % 4 else "" for column in range(5)] for row in range(60)]
    out = io.StringIO()
    csv.writer(out).writerows([[f"name {column}" for column in range(5)], *rows])
    cut = tools.laws(out.getvalue().encode(), "a.csv")
    rendered = rows_of(cut)
    assert len(rendered) == len(rows)
    for row, line in zip(rows, rendered, strict=True):
        assert line == "; ".join(f"name {column}: {value}" for column, value in enumerate(row) if value)


def test_law_9_a_row_put_in_changes_few_chunks(tools: SimpleNamespace) -> None:
    lines = [f"{n},article {n * 7919 % 1000},{n * 31 % 97}" for n in range(400)]
    before = {chunk.id for chunk in tools.cut("\n".join(["id,article,count", *lines]), "a.csv").chunks}
    changed = []
    for place in range(10, 390, 20):
        edited = [*lines[:place], "999,something new,5", *lines[place:]]
        after = {chunk.id for chunk in tools.cut("\n".join(["id,article,count", *edited]), "a.csv").chunks}
        changed.append(len(after - before))
    assert max(changed) <= 8
    assert sorted(changed)[len(changed) // 2] <= 3


def test_a_row_is_cut_only_where_it_alone_is_over_the_budget(
    tools: SimpleNamespace, model_counter: ModelTokenCounter
) -> None:
    long_text = " ".join(f"word{n}" for n in range(400))
    source = f'id,short,text,last\n1,a,"{long_text}",z\n2,b,brief,y\n'
    cut = tools.laws(source.encode(), "a.csv", counter=model_counter)
    pieces = [chunk for chunk in cut.chunks if chunk.start_line == 2]
    assert len(pieces) > 3
    assert "id: 1; short: a; " in pieces[0].embedded_text
    assert all("id: 1" in chunk.embedded_text for chunk in pieces)
    assert all("text:" in chunk.prefix for chunk in pieces[1:-1])
    assert "last: z" in pieces[-1].embedded_text
    assert rows_of(cut)[-1] == "id: 2; short: b; text: brief; last: y"


def test_rows_are_grouped_when_short_and_alone_when_long(
    tools: SimpleNamespace, model_counter: ModelTokenCounter
) -> None:
    short = "id,name\n" + "".join(f"{n},nails of size {n}\n" for n in range(100))
    sizes = [chunk.tokens for chunk in tools.laws(short.encode(), "a.csv", counter=model_counter).chunks[1:]]
    assert 100 <= sum(sizes) / len(sizes) <= 200
    long = "id,text\n" + "".join(f"{n},{' '.join(['nails'] * 80)}\n" for n in range(10))
    assert len(tools.laws(long.encode(), "a.csv", counter=model_counter).chunks) == 11


@pytest.mark.parametrize(
    ("source", "delimiter", "columns", "rows"),
    [
        ("a,b\n1,2\n", ",", ["a", "b"], 1),
        ("a;b\n1,5;2,5\n3,1;4,2\n", ";", ["a", "b"], 2),
        ("a\tb\nx, y\tz\n", "\t", ["a", "b"], 1),
        ("a|b|c\n1|2|3\n", "|", ["a", "b", "c"], 1),
        ("name\nnails\nscrews\n", ",", ["name"], 2),
        ("1,2\n3,4\n", ",", [], 2),
        ("2024-05-01,12.50 €\n2024-05-02,3.10 €\n", ",", [], 2),
        ("red,1\nblue,2\nred,3\n", ",", [], 3),
        ("a,b\n1,2,3\n\n4\n,,\n", ",", ["a", "b"], 2),
        ("# made by a tool\n\nid,name\n1,x\n", ",", ["id", "name"], 1),
        ('"a;b";c\n1;2\n', ";", ["a;b", "c"], 1),
        ('a,b\n"x,1\n"y" z,2\n3,"4', ",", ["a", "b"], 3),
        ("a,,c\n1,2,3\n", ",", ["a", "", "c"], 1),
    ],
)
def test_dialect_and_header(tools: SimpleNamespace, source: str, delimiter: str, columns: list[str], rows: int) -> None:
    cut = tools.laws(source.encode(), "a.csv")
    assert cut.metadata == {"columns": columns, "delimiter": delimiter, "rows": rows}


def test_ragged_rows_keep_every_value(tools: SimpleNamespace) -> None:
    cut = tools.laws(b"a,b\n1,2,3,4\n5\n,6\n", "a.csv")
    assert rows_of(cut) == ["a: 1; b: 2; column 3: 3; column 4: 4", "a: 5", "b: 6"]


def test_rows_of_nothing_are_dropped_as_markup(tools: SimpleNamespace) -> None:
    cut = tools.laws(b'a,b\n,\n"",""\n1,2\n', "a.csv")
    assert [dropped.reason for dropped in cut.dropped] == ["markup", "markup"]
    assert rows_of(cut) == ["a: 1; b: 2"]


def test_a_tab_separated_file_prefers_tabs() -> None:
    assert delimiter_of("a,b\tc,d\n1,2\t3,4\n", preferred="\t") == "\t"
    assert parse("a\tb\n1\t2\n", name="x.tsv").type == "tsv"
    assert kinds(parse("a\tb\n1\t2\n", name="x.tab")) == ["table_header", "table_row"]


def test_nul_and_huge_cells_are_no_errors(tools: SimpleNamespace) -> None:
    tools.laws(b"a,b\n1\x00,2\n", "a.csv")
    cut = tools.laws(b'a,b\n1,"' + b"x" * 300_000 + b'"\n', "a.csv")
    assert len(cut.chunks) > 100


def test_laws_on_real_tables(tools: SimpleNamespace) -> None:
    found = sorted(
        path for path in Path(sysconfig.get_path("purelib")).rglob("*.[ct]sv") if path.stat().st_size < 40_000
    )
    for path in found[:20]:
        tools.laws(path.read_bytes(), path.name)


@pytest.mark.timeout(120)
def test_time_and_memory_are_linear() -> None:
    line = '12345,Ada Roe,"some note, quoted",2024-01-02,3.5\n'
    text = "id,name,note,date,value\n" + line * 40_000
    tracemalloc.start()
    start = time.process_time()
    document = parse(text, name="a.csv")
    seconds = time.process_time() - start
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert document.metadata["rows"] == 40_000
    assert peak < 25 * len(text)
    assert seconds < 60


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "unit", ['"x,y\n', ',"""a', '"a""\n', '"', 'a,"b",', '",', '"""",', '"a\n', '""a\n', '"\n""', ","]
)
def test_unclosed_quotes_cost_linear_time(unit: str) -> None:
    def seconds(count: int) -> float:
        start = time.process_time()
        parse("a,b\n" + unit * count, name="a.csv")
        return time.process_time() - start

    seconds(100)
    assert seconds(32_000) < 30 * max(seconds(4_000), 0.01)


_CELLS = st.one_of(
    st.text(max_size=20), st.sampled_from(['"', '""', ",", ";", "\t", "\n", "\r\n", "é→界", "", " ", "12", "x" * 400])
)


@pytest.mark.timeout(300)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(st.lists(_CELLS, max_size=6), max_size=12),
    delimiter=st.sampled_from([",", ";", "\t", "|"]),
    quoted=st.booleans(),
    limit=st.integers(12, 256),
)
def test_laws_hold_for_random_tables(
    tools: SimpleNamespace, rows: list[list[str]], delimiter: str, quoted: bool, limit: int
) -> None:
    if quoted:
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter).writerows(rows)
        text = out.getvalue()
    else:
        text = "\n".join(delimiter.join(row) for row in rows)
    data = text.encode("utf-8", "surrogatepass")
    assert tools.laws(data, "a.csv", limit=limit) == tools.cut(data, "a.csv", limit=limit)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(st.lists(st.text('ab ",;\n', min_size=1, max_size=6), min_size=2, max_size=4), min_size=1, max_size=8)
)
def test_records_are_those_of_the_standard_reader(rows: list[list[str]]) -> None:
    width = min(len(row) for row in rows)
    rows = [["one", "two", "three", "four"][:width], *(row[:width] for row in rows)]
    out = io.StringIO()
    csv.writer(out, delimiter="|", quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    document = parse(out.getvalue(), name="a.csv")
    expected = []
    for row in rows[1:]:
        cells = [" ".join(value.split()) for value in row]
        line = "; ".join(f"{name}: {value}" for name, value in zip(rows[0], cells, strict=True) if value)
        expected += [line] if line else []
    if document.metadata["columns"] == rows[0]:
        assert [block.text for block in document.blocks if block.kind == "table_row"] == expected
