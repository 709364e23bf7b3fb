"""Web pages: what a reader sees is kept, where it stood is known, and no page is too wild."""

from __future__ import annotations

import json
import sysconfig
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragd.chunkers.document import Document
from ragd.chunkers.parsers.html import parse
from ragd.chunkers.records import Cut

GUIDE = """<!doctype html>
<html lang="en-GB"><head><title>Guide — Example</title>
<meta name="description" content="How to count."><style>.x { color: red }</style><script>let hidden = 1</script></head>
<body>
<header><a href="/">Example</a> <form><input name="q"></form></header>
<nav><ul><li><a href="/a">Start zqnav</a><li><a href="/b">More</a></ul></nav>
<main>
<h1 id="top">The Guide<a class="headerlink" href="#top">¶</a></h1>
<p>Counting &amp; weighing,<br>second line of <b>bold</b> and <i>slanted</i> text.
<section id="install"><h2>Install</h2>
<p>Run this:</p>
<pre><code class="language-sh">pip install counting
  --upgrade

</code></pre>
<ul><li>One<ul><li>Nested</ul><li><p>Two</p><p>More of two</p></ul>
<ol start="3"><li>three<li>four</ol></section>
<h2>Limits</h2>
<table><caption>What it takes</caption>
<thead><tr><th>key<th>unit</thead>
<tr id="row-k1"><td rowspan="2">k1<td>ms<tr><td>s<tr><td colspan="2">wide</table>
<dl><dt id="term">Term<dd>Its meaning.<dt>Other<dd>Its own.</dl>
<dl class="py"><dt class="sig" id="mod.f">mod.f(a, b)<dd><p>Does f.</p><pre>f(1)</pre></dl>
<details><summary>Why?</summary><p>Because.</p></details>
<figure><img alt="x"><figcaption>Figure 1: scales.</figcaption></figure>
<blockquote><p>Said somebody.</blockquote>
<p hidden>zqhidden</p><div style="display: none">zqgone</div><span aria-hidden="true">zqicon</span>
<aside>A note inside.</aside>
</main>
<aside>zqaside</aside><div class="cookie-banner">zqcookie</div>
<footer>zqfoot © 2024</footer>
</body></html>
"""


def kinds(document: Document) -> list[tuple[str, int, str]]:
    return [(block.kind, block.level, document.text[block.start : block.end]) for block in document.blocks]


def words(cut: Cut) -> list[str]:
    return [chunk.text for chunk in cut.chunks]


def test_the_canonical_text_is_what_a_reader_sees() -> None:
    document = parse(GUIDE, name="guide.html")
    assert document.canonical
    assert kinds(document) == [
        ("heading", 1, "The Guide"),
        ("paragraph", 0, "Counting & weighing,\nsecond line of bold and slanted text."),
        ("heading", 2, "Install"),
        ("paragraph", 0, "Run this:"),
        ("code", 0, "pip install counting\n  --upgrade"),
        ("list_item", 1, "- One"),
        ("list_item", 2, "  - Nested"),
        ("list_item", 1, "- Two"),
        ("paragraph", 1, "  More of two"),
        ("list_item", 1, "3. three"),
        ("list_item", 1, "4. four"),
        ("heading", 2, "Limits"),
        ("paragraph", 0, "What it takes"),
        ("table_header", 0, "| key | unit |\n|---|---|"),
        ("table_row", 0, "| k1 | ms |"),
        ("table_row", 0, "|  | s |"),
        ("table_row", 0, "| wide |  |"),
        ("list_item", 1, "Term\nIts meaning."),
        ("list_item", 1, "Other\nIts own."),
        ("heading", 4, "mod.f(a, b)"),
        ("paragraph", 0, "Does f."),
        ("code", 0, "f(1)"),
        ("list_item", 1, "Why?\nBecause."),
        ("paragraph", 0, "Figure 1: scales."),
        ("quote", 0, "Said somebody."),
        ("paragraph", 0, "A note inside."),
    ]
    assert (document.title, document.language) == ("The Guide", "en")
    assert document.metadata["description"] == "How to count."
    assert document.metadata["page_title"] == "Guide — Example"
    assert next(block.language for block in document.blocks if block.kind == "code") == "sh"


def test_blocks_and_the_text_agree() -> None:
    document = parse(GUIDE, name="guide.html")
    end = 0
    for block in document.blocks:
        assert not document.text[end : block.start].strip()
        assert document.text[block.start : block.end].strip() == document.text[block.start : block.end].strip("\n ")
        end = block.end
    assert end == len(document.text)


@pytest.mark.parametrize(
    "word", ["zqnav", "zqhidden", "zqgone", "zqicon", "zqaside", "zqcookie", "zqfoot", "hidden = 1", "¶"]
)
def test_law_18_what_is_hidden_or_around_never_appears(tools: SimpleNamespace, word: str) -> None:
    cut = tools.laws(GUIDE.encode(), "guide.html")
    assert cut.chunks
    assert all(word not in chunk.embedded_text for chunk in cut.chunks)


def test_law_18_locators_lead_somewhere(tools: SimpleNamespace) -> None:
    document = parse(GUIDE, name="guide.html")
    places = {document.text[offset:].split("\n")[0]: locator for offset, locator in document.locators}
    assert places["The Guide"] == "#top"
    assert places["Install"] == "#install"
    assert places["| k1 | ms |"] == "#row-k1"
    assert places["Term"] == "#term"
    assert places["mod.f(a, b)"] == "#mod.f"
    line = GUIDE[: GUIDE.index("<h2>Limits")].count("\n") + 1
    assert places["Limits"] == f"line {line}"
    cut = tools.laws(GUIDE.encode(), "guide.html", limit=64)
    ids = {part.split('"')[0] for part in GUIDE.split(' id="')[1:]}
    for chunk in cut.chunks:
        assert chunk.locator is not None
        assert chunk.locator.startswith("line ") or chunk.locator[1:] in ids


def test_fault_a2_a_long_table_keeps_its_header(tools: SimpleNamespace) -> None:
    rows = "".join(f"<tr><td>k{n:03}<td>ms<td>{n}</tr>" for n in range(120))
    page = f"<h1>Limits</h1><table><tr><th>key<th>unit<th>limit</tr>{rows}</table>"
    cut = tools.laws(page.encode(), "a.html", limit=128)
    seen = []
    for chunk in cut.chunks:
        if "| k" in chunk.text:
            assert chunk.embedded_text.count("| key | unit | limit |\n|---|---|---|") == 1
            seen += [line for line in chunk.text.split("\n") if line.startswith("| k") and "key" not in line]
    assert seen == [f"| k{n:03} | ms | {n} |" for n in range(120)]


def test_fault_a8_equal_paragraphs_have_places_of_their_own(tools: SimpleNamespace) -> None:
    paragraph = "<p>" + "The same sentence again. " * 12 + "</p>"
    page = "".join(f"<h2 id=s{n}>Part {n}</h2>{paragraph}" for n in range(5))
    cut = tools.laws(page.encode(), "a.html", limit=128)
    assert [chunk.locator for chunk in cut.chunks if "Part" in chunk.text] == [f"#s{n}" for n in range(5)]
    assert len({chunk.id for chunk in cut.chunks}) == len(cut.chunks)


def test_fault_a10_long_headings_never_push_out_the_body(tools: SimpleNamespace) -> None:
    headings = "".join(f"<h{n}>{'long heading words ' * 13}{n}</h{n}>" for n in range(1, 7))
    cut = tools.laws(f"{headings}<p>short body zqx".encode(), "n" * 150 + ".html", limit=128)
    assert any("short body zqx" in chunk.text for chunk in cut.chunks)


def test_fault_a16_a_heading_stands_once(tools: SimpleNamespace) -> None:
    cut = tools.laws(b"<h1>Root</h1><h2>24/7 desk</h2><p>zqx", "a.html")
    (chunk,) = [chunk for chunk in cut.chunks if "zqx" in chunk.text]
    assert chunk.embedded_text.count("24/7 desk") == 1
    assert "24/7 desk" in chunk.section or chunk.section == ("Root",)


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title>T</title><h1>H</h1><p>x", "H"),
        ("<title>T</title><p>before</p><h1>H</h1><p>x", "T"),
        ("<title>T</title><h1>A</h1><h1>B</h1><p>x", "T"),
        ("<meta property=og:title content='O &amp; G'><p>x", "O & G"),
        ("<p>x", "page"),
    ],
)
def test_title(tools: SimpleNamespace, page: str, title: str) -> None:
    assert tools.laws(page.encode(), "page.html").title == title


def test_a_page_without_a_main_part_keeps_its_edges(tools: SimpleNamespace) -> None:
    cut = tools.laws(
        b"<header>zqa</header><nav>zqb</nav><div>zqc</div><aside>zqd</aside><footer>zqe</footer>", "a.html"
    )
    text = " ".join(words(cut))
    assert [word in text for word in ("zqa", "zqb", "zqc", "zqd", "zqe")] == [True, False, True, True, True]


def test_an_empty_main_part_is_not_believed(tools: SimpleNamespace) -> None:
    cut = tools.laws(b"<main id=root></main><div>" + b"zqx text of the page. " * 20 + b"</div>", "a.html")
    assert "zqx" in words(cut)[0]


def test_a_main_part_inside_of_boilerplate_is_kept(tools: SimpleNamespace) -> None:
    page = b"<form id=aspnet><header>zqa</header><div aria-hidden=true hidden><main><p>zqmain text</main></div></form>"
    text = " ".join(words(tools.laws(page, "a.html")))
    assert "zqmain" in text
    assert "zqa" not in text


def test_text_beside_a_short_main_part_is_kept_but_links_are_not(tools: SimpleNamespace) -> None:
    page = b"<main><p>zqmain is here</p></main><div>zqbeside and more words</div><div><a href=x>zqlink</a></div>"
    text = " ".join(words(tools.laws(page, "a.html")))
    assert "zqmain" in text
    assert "zqbeside" in text
    assert "zqlink" not in text


def test_a_page_of_nothing_but_navigation_is_not_empty(tools: SimpleNamespace) -> None:
    assert "zqx" in words(tools.laws(b"<nav><a href=x>zqx</a></nav>", "a.html"))[0]
    assert "zqy" in words(tools.laws(b"<script>x</script><noscript>zqy</noscript>", "a.html"))[0]
    assert tools.laws(b"<script>x</script><style>y</style>", "a.html").chunks == ()


def test_a_layout_table_is_no_table() -> None:
    page = "<table><tr><td><h2>Left</h2><p>a</p></td><td><p>b</p></td></tr><tr><td>c<td>d</table>"
    assert [kind for kind, _, _ in kinds(parse(page, name="a.html"))] == [
        "heading", "paragraph", "paragraph", "paragraph", "paragraph",
    ]  # fmt: skip
    nested = "<table><tr><td>x<td><table><tr><td>1<td>2<tr><td>3<td>4</table></table>"
    assert kinds(parse(nested, name="a.html")) == [
        ("paragraph", 0, "x"),
        ("table_line", 0, "| 1 | 2 |"),
        ("table_line", 0, "| 3 | 4 |"),
    ]


def test_line_numbers_beside_code_are_dropped() -> None:
    page = "<table class=highlighttable><tr><td class=linenos><pre>1\n2</pre><td class=code><pre>a\nb</pre></table>"
    assert kinds(parse(page, name="a.html")) == [("code", 0, "a\nb")]


def test_buttons_are_text_only_as_headings() -> None:
    page = "<h2><button>Question</button></h2><p>Answer<button>Copy</button></p><h2>Title<button>Copy</button></h2>"
    assert [text for _, _, text in kinds(parse(page, name="a.html"))] == ["Question", "Answer", "Title"]


def test_entities_and_unclosed_tags(tools: SimpleNamespace) -> None:
    cut = tools.laws(b"<p>a &lt; b &eacute;&#x1F9EA; &nbsp; &unknown;<p>c <b>d <i>e</b> f", "a.html")
    assert words(cut) == ["a < b é🧪 &unknown;\n\nc d e f"]


def test_a_page_without_extension_is_known_by_how_it_begins(tools: SimpleNamespace) -> None:
    assert tools.laws(b"<!DOCTYPE html><p>zqx", "page").type == "html"
    assert tools.laws(b"<p>zqx", "page.htm").type == "html"


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    "page",
    [
        "<div>" * 10_000 + "x",
        "<div>" * 10_000 + "x" + "</div>" * 10_000,
        "<table><tr><td>" * 2_000 + "x",
        "<ul><li>a" * 3_000,
        "<dl><dt>a<dd>b" * 2_000,
        "<blockquote><p>" * 3_000 + "x",
        "<b>" * 10_000 + "<p>" * 50 + "x",
        "<section id=a><h2>t" * 2_000,
        "<details><summary>s" * 2_000,
        "<p " + "a" * 1_000_000 + "=1>x",
        "<a href=#>" * 2_000 + "x",
        "&amp;" * 50_000,
        "<table>" + "<tr><td>a<td>b" * 5_000,
        "<dl>" + "<dt>x" * 10_000 + "<dd>y",
        "<table><tr><td colspan=99999 rowspan=99999>a<td>b<tr><td>c<td>d</table>",
        "<!--" * 10_000,
        "<![CDATA[" * 1_000,
        "\x00<p>a\x00b",
        "<svg><foreignObject>" * 1_000 + "<p>x",
    ],
    ids=range(19),
)
def test_hostile_pages_end(tools: SimpleNamespace, page: str) -> None:
    tools.laws(page.encode(), "a.html")


def test_time_is_linear() -> None:
    def seconds(copies: int) -> float:
        start = time.process_time()
        parse(GUIDE * copies, name="a.html")
        return time.process_time() - start

    seconds(2)
    assert seconds(160) < 20 * max(seconds(20), 0.02)


def test_laws_on_real_pages(tools: SimpleNamespace) -> None:
    pages = sorted(
        path for path in Path(sysconfig.get_path("purelib")).rglob("*.html") if path.stat().st_size < 200_000
    )
    for path in pages[:20]:
        tools.laws(path.read_bytes(), path.name)


_TAGS = [
    "p", "div", "h1", "h2", "h3", "ul", "ol", "li", "table", "tr", "td", "th", "thead", "caption", "dl", "dt", "dd",
    "pre",
    "code", "b", "a href=#x", "a name=n", "main", "article", "section id=s", "nav", "header", "footer", "aside",
    "details",
    "summary", "blockquote", "span aria-hidden=true", "div hidden", "script", "style", "template", "svg",
    "textarea", "br",
    "button", "select", "title", "noscript", "math", "form", "td rowspan=3", "td colspan=2", "figure", "figcaption",
]  # fmt: skip
_PIECES = st.lists(
    st.one_of(
        st.sampled_from(_TAGS).map(lambda tag: f"<{tag}>"),
        st.sampled_from(_TAGS).map(lambda tag: f"</{tag.split()[0]}>"),
        st.text(max_size=15),
        st.sampled_from(
            ["<!--", "-->", "&lt;", "&#0;", "<!doctype html>", "word " * 40, "é→界", "<", ">", "&", "\r\n"]
        ),
    ),
    max_size=40,
).map("".join)


@pytest.mark.timeout(300)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(page=_PIECES, limit=st.integers(12, 300), chunker=st.sampled_from(["auto", "paragraph", "blocks"]))
def test_laws_hold_for_broken_pages(tools: SimpleNamespace, page: str, limit: int, chunker: str) -> None:
    data = page.encode("utf-8", "surrogatepass")
    cut = tools.laws(data, "a.html", limit=limit, chunker=chunker)
    assert cut == tools.cut(data, "a.html", limit=limit, chunker=chunker)
    json.dumps(cut.metadata)
