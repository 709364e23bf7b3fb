"""The configuration: what is refused and how it is said, what the defaults are, how roots and rules work
out."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragd.chunkers.records import CutSettings
from ragd.daemon import config as config_module
from ragd.daemon.config import Config, find_config, load_config, parse_config
from ragd.daemon.config_lines import lines_of
from ragd.daemon.config_schema import NOT_YET, Settings
from ragd.daemon.errors import UsageError


@pytest.fixture(autouse=True)
def _known_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config_module, "_known_types", lambda: frozenset({"markdown", "csv", "python"}))
    monkeypatch.setattr(config_module, "_known_chunkers", lambda: frozenset({"auto", "structure", "sentence"}))


def problems_of(text: str, folder: Path) -> list[str]:
    """The problems of a file, each without the path of the file in front."""
    file = folder / "config.toml"
    with pytest.raises(UsageError) as caught:
        parse_config(text, file)
    assert caught.value.exit_code == 2
    assert caught.value.problems
    assert all(problem.startswith(str(file)) for problem in caught.value.problems)
    return [problem.removeprefix(f"{file}:") for problem in caught.value.problems]


def good(text: str, folder: Path) -> Config:
    return parse_config(text, folder / "config.toml")


def test_fault_f17_an_unknown_key_in_watch_is_refused_with_the_place_it_belongs_to(tmp_path: Path) -> None:
    assert problems_of('[watch]\npath = ["~/notes"]\n', tmp_path) == [
        "2: watch.path: unknown key; did you mean path in [store] or [[root]]? "
        "Known here: debounce_ms, max_delay_ms, poll, poll_seconds"
    ]


@pytest.mark.parametrize(
    ("text", "line", "key", "nearest"),
    [
        ("chunk-size = 300\n", 1, "chunk-size", "target_tokens in [chunking]"),
        ("[chunking]\nchunk-size = 300\n", 2, "chunking.chunk-size", "target_tokens"),
        ('[chunking]\noverlap = "50"\n', 2, "chunking.overlap", "overlap_ratio"),
        ("[chunking.markdown]\ntarget_token = 3\n", 2, "chunking.markdown.target_token", "target_tokens"),
        ("[embeding]\nmodel = 'x'\n", 1, "embeding", "[embedding]"),
        ("[roots]\npath = 'x'\n", 1, "roots", "[[root]]"),
        ("debounce_ms = 3\n", 1, "debounce_ms", "debounce_ms in [watch]"),
        (
            '[[root]]\npath = "."\nfolow_symlinks = true\n',
            3,
            'root[0].folow_symlinks (".")',
            "follow_symlinks",
        ),
        (
            '[[root]]\npath = "."\n[[root.rule]]\nglob = "*"\nmax_token = 3\n',
            5,
            'root[0].rule[0].max_token (".")',
            "max_tokens",
        ),
    ],
)
def test_fault_f17_an_unknown_key_is_named_with_its_line_and_the_nearest_valid_one(
    tmp_path: Path, text: str, line: int, key: str, nearest: str
) -> None:
    (problem,) = problems_of(text, tmp_path)
    assert problem.startswith(f"{line}: {key}: unknown")
    assert f"did you mean {nearest}?" in problem


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[chunking]\noverlap_ratio = "50"',
            'chunking.overlap_ratio: must be a number (without the quotes), not "50"',
        ),
        ("[watch]\ndebounce_ms = 1.5", "watch.debounce_ms: must be a whole number, not 1.5"),
        ("[watch]\ndebounce_ms = true", "watch.debounce_ms: must be a whole number, not true"),
        ("[watch]\npoll = 1", 'watch.poll: must be "auto", true or false, not 1'),
        ('[watch]\npoll = "always"', 'watch.poll: must be "auto", true or false, not "always"'),
        ("[embedding]\noffline = 1", "embedding.offline: must be true or false, not 1"),
        ("[embedding]\nmodel = 7", 'embedding.model: must be text in quotes ("..."), not 7'),
        ('[embedding]\nmodel = ""', "embedding.model: must not be empty"),
        ('[search]\nmode = "hibrid"', 'did you mean "hybrid"?'),
        ("[server]\nport = 70000", "server.port: must be at most 65535, not 70000"),
        ("[limits]\nparse_seconds = 0", "limits.parse_seconds: must be more than 0.0, not 0"),
        ("[limits]\nmax_file_mb = nan", "limits.max_file_mb: must be"),
        ("server = 4", "server: must be a table of keys, not 4"),
        ('[[root]]\npath = "."\nlabels = "x"', 'labels ("."): must be a list (["...", "..."]), not "x"'),
        ('[[root]]\npath = "."\nlabels = ["x", 4]', 'labels[1] ("."): must be text in quotes ("..."), not 4'),
        ('[root]\npath = "."', "write it as [[root]]"),
        ("[[root]]\nname = 'x'", 'root[0].path ("x"): is required'),
    ],
)
def test_fault_f17_a_wrong_type_or_value_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (problem,) = problems_of(text, tmp_path)
    assert message in problem


def test_fault_f17_every_problem_is_reported_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "link").symlink_to("notes")
    text = "\n".join(
        [
            "[watch]",
            'path = ["~/notes"]',
            'debounce_ms = "5"',
            "[schedule]",
            'walk = "soon"',
            "[[root]]",
            'path = "notes"',
            "[[root]]",
            'path = "link"',
            "[chunking]",
            "target_tokens = 300",
            "max_tokens = 200",
        ]
    )
    found = problems_of(text, tmp_path)
    assert [problem.split(": ")[:2] for problem in found] == [
        ["2", "watch.path"],
        ["3", "watch.debounce_ms"],
        ["5", "schedule.walk"],
        ["9", 'root[1].path ("link")'],
        ["12", "chunking.max_tokens"],
    ]


def test_fault_f17_home_and_variables_are_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("WORK", "papers")
    config = good(
        '[store]\npath = "$HOME/state"\n[[root]]\npath = "~/notes"\n[[root]]\npath = "${HOME}/$WORK"\n'
        '[[root]]\npath = "beside"\n',
        tmp_path / "etc",
    )
    assert config.state_dir == tmp_path / "home/state"
    assert [root.path for root in config.roots] == [
        str(tmp_path / "home/notes"),
        str(tmp_path / "home/papers"),
        str(tmp_path / "etc/beside"),
    ]


def test_fault_f17_a_folder_that_is_not_there_is_a_warning_and_a_root(tmp_path: Path) -> None:
    config = good('[[root]]\npath = "gone"\n', tmp_path)
    assert config.warnings == (f'The root "gone" is unavailable: there is no folder {tmp_path}/gone',)
    assert not config.roots[0].available()


def test_fault_f17_nested_roots_are_fine(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    config = good('[[root]]\npath = "a"\n[[root]]\npath = "a/b"\n', tmp_path)
    assert [root.name for root in config.roots] == ["a", "b"]
    assert config.warnings == ()


@pytest.mark.parametrize("other", ["notes", "./notes/", "link", "notes/../notes", "$HERE/notes"])
def test_one_folder_as_two_roots_is_refused(tmp_path: Path, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERE", str(tmp_path))
    (tmp_path / "notes").mkdir()
    (tmp_path / "link").symlink_to("notes")
    (problem,) = problems_of(f'[[root]]\npath = "notes"\n[[root]]\npath = "{other}"\n', tmp_path)
    assert "is the folder of root[0] already" in problem


def test_one_folder_that_is_not_there_as_two_roots_is_refused_too(tmp_path: Path) -> None:
    (problem,) = problems_of('[[root]]\npath = "gone"\n[[root]]\npath = "gone/"\n', tmp_path)
    assert "is the folder of root[0] already" in problem


@pytest.mark.parametrize("root", ["state", "state/", "state/chroma", "link", "link/deep"])
def test_fault_c9_a_root_in_the_state_folder_is_refused(tmp_path: Path, root: str) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "link").symlink_to("state")
    (problem,) = problems_of(f'[store]\npath = "state"\n[[root]]\npath = "{root}"\n', tmp_path)
    assert f"is in the state folder {tmp_path / 'state'}" in problem
    assert problem.startswith("4: root[0].path")


def test_a_root_around_the_state_folder_or_beside_it_is_fine(tmp_path: Path) -> None:
    good('[store]\npath = "a/state"\n[[root]]\npath = "a"\n[[root]]\npath = "a/state2"\n', tmp_path)


def test_two_roots_of_one_name_are_refused(tmp_path: Path) -> None:
    (problem,) = problems_of('[[root]]\npath = "a"\nname = "x"\n[[root]]\npath = "b"\nname = "x"\n', tmp_path)
    assert 'root[1].name ("x"): "x" is the name of root[0] already' in problem


def test_a_default_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    config = good(
        '[[root]]\npath = "a/notes"\n[[root]]\npath = "b/notes"\n[[root]]\npath = "c"\nname = "notes-2"\n',
        tmp_path,
    )
    assert [root.name for root in config.roots] == ["notes", "notes-3", "notes-2"]


@pytest.mark.parametrize("path", ["$NOT_SET_ANYWHERE/x", "~no-such-user-here/x"])
def test_a_path_that_cannot_be_expanded_is_refused(tmp_path: Path, path: str) -> None:
    (problem,) = problems_of(f'[[root]]\npath = "{path}"\n', tmp_path)
    assert "root[0].path" in problem


@pytest.mark.parametrize("ratio", [0.51, 1.0, 2, -0.1])
def test_fault_a3_an_overlap_as_large_as_the_chunk_is_refused_by_name(tmp_path: Path, ratio: float) -> None:
    (problem,) = problems_of(f"[chunking]\noverlap_ratio = {ratio}\n", tmp_path)
    assert "chunking.overlap_ratio: must be at " in problem


@pytest.mark.parametrize("when", ["off", "90s", "15m", "6h", "1d", "0 3 * * *", "*/5 * * * mon-fri"])
def test_a_timer_is_an_interval_a_cron_expression_or_off(tmp_path: Path, when: str) -> None:
    assert good(f'[schedule]\nwalk = "{when}"\n', tmp_path).schedule.walk == when


@pytest.mark.parametrize("when", ["", "15", "0m", "15x", "* * * *", "61 * * * *", "never"])
def test_any_other_timer_is_refused(tmp_path: Path, when: str) -> None:
    (problem,) = problems_of(f'[schedule]\nretry = "{when}"\n', tmp_path)
    assert "schedule.retry" in problem


@pytest.mark.parametrize("glob", ["!a", "../x", "[z-a]", "foo\\\\", "/", " ", "#x"])
@pytest.mark.parametrize("key", ["include", "exclude"])
def test_a_glob_that_cannot_match_is_refused(tmp_path: Path, glob: str, key: str) -> None:
    (problem,) = problems_of(f'[[root]]\npath = "."\n{key} = ["{glob}"]\n', tmp_path)
    assert f"root[0].{key}" in problem


def test_unknown_types_and_chunkers_are_refused_with_the_nearest(tmp_path: Path) -> None:
    found = problems_of('[chunking]\nchunker = "sentense"\n[chunking.markdwn]\nprefix = false\n', tmp_path)
    assert 'no chunker "sentense"; did you mean sentence?' in found[0]
    assert "chunking.markdwn: unknown type; did you mean markdown?" in found[1]


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "example.org", "::"])
def test_only_loopback_is_served(tmp_path: Path, host: str) -> None:
    (problem,) = problems_of(f'[server]\nhost = "{host}"\n', tmp_path)
    assert "server.host: must be a loopback address" in problem


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.5", "::1", "localhost"])
def test_every_loopback_address_is(tmp_path: Path, host: str) -> None:
    assert good(f'[server]\nhost = "{host}"\n', tmp_path).server.host == host


def test_keys_of_a_later_version_are_refused_as_not_there_yet(tmp_path: Path) -> None:
    for table, keys in NOT_YET.items():
        for key in sorted(keys):
            head = '[[root]]\npath = "."\n[[root.rule]]\nglob = "*"' if table == "root.rule" else f"[{table}]"
            (problem,) = problems_of(f"{head}\n{key} = 1\n", tmp_path)
            assert f"{key}" in problem
            assert "is not there yet" in problem


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[store]\nchroma = "http://localhost:8000"', "a Chroma server is not there yet"),
        ('[embedding]\nbackend = "onnx"', '"onnx" is not there yet'),
        ('[embedding]\nprecision = "int8"', '"int8" is not there yet'),
        ('[[server.client]]\nname = "x"', "is not there yet"),
    ],
)
def test_values_of_a_later_version_are_refused_as_not_there_yet(tmp_path: Path, text: str, message: str) -> None:
    (problem,) = problems_of(text, tmp_path)
    assert message in problem


def test_a_syntax_error_says_line_and_column(tmp_path: Path) -> None:
    (problem,) = problems_of("[watch]\npoll = = 2\n", tmp_path)
    assert problem.startswith("2:8: not valid TOML: ")


def test_a_file_that_is_not_utf8_says_the_line(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"[watch]\n# caf\xe9\n")
    with pytest.raises(UsageError) as caught:
        load_config(file)
    assert caught.value.problems == (f"{file}:2: not UTF-8 text",)


def test_a_byte_order_mark_and_windows_line_ends_are_no_problem(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xef\xbb\xbf[search]\r\nk = 7\r\n")
    assert load_config(file).search.k == 7


def test_no_file_is_the_defaults() -> None:
    config = load_config(None)
    assert config.settings == Settings()
    assert config.warnings == ("There is no [[root]]: nothing is indexed.",)
    assert config.cpu_threads >= 1
    assert config.model_threads == config.cpu_threads


def test_paths_of_the_server_are_in_the_state_folder_unless_said(tmp_path: Path) -> None:
    config = good('[store]\npath = "state"\n', tmp_path)
    assert (config.socket_path, config.token_file) == (tmp_path / "state/ragd.sock", tmp_path / "state/token")
    config = good('[server]\nsocket = "s.sock"\ntoken_file = "t"\n', tmp_path)
    assert (config.socket_path, config.token_file) == (tmp_path / "s.sock", tmp_path / "t")


def test_the_file_is_found_by_option_then_environment_then_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    one, two, three = tmp_path / "one.toml", tmp_path / "two.toml", tmp_path / "xdg/ragd/config.toml"
    assert find_config(None, {}) is None
    three.parent.mkdir(parents=True)
    for file in (one, two, three):
        file.touch()
    assert find_config(str(one), {"RAGD_CONFIG": str(two)}) == one
    assert find_config(None, {"RAGD_CONFIG": str(two)}) == two
    assert find_config(None, {"RAGD_CONFIG": ""}) == three


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--config: there is no configuration file"):
        find_config(str(tmp_path / "none.toml"), {})
    with pytest.raises(UsageError, match="RAGD_CONFIG: there is no configuration file"):
        find_config(None, {"RAGD_CONFIG": str(tmp_path / "none.toml")})


def test_a_rule_wins_over_a_type_and_a_type_over_chunking(tmp_path: Path) -> None:
    config = good(
        '[chunking]\nchunker = "sentence"\nprefix = false\ntarget_tokens = 100\n'
        "[chunking.markdown]\ntarget_tokens = 200\n"
        '[[root]]\npath = "."\n'
        '[[root.rule]]\nglob = "meetings/**"\ntarget_tokens = 300\nmax_tokens = 400\n'
        '[[root.rule]]\nglob = "*.md"\nchunker = "structure"\n'
        '[[root.rule]]\nglob = "meetings/today.md"\ntarget_tokens = 350\n',
        tmp_path,
    )
    root = config.roots[0]

    def cut(path: str | bytes, type_name: str) -> CutSettings:
        return config.cut_settings(root, path, type_name)

    assert cut("a.txt", "text") == CutSettings("sentence", 100, 800, 0.12, False)
    assert cut("a.md", "markdown") == CutSettings("structure", 200, 800, 0.12, False)
    assert cut(b"meetings/a.md", "markdown") == CutSettings("structure", 300, 400, 0.12, False)
    assert cut("meetings/today.md", "markdown") == CutSettings("structure", 350, 400, 0.12, False)
    assert cut(b"meetings/\xff.txt", "text") == CutSettings("sentence", 300, 400, 0.12, False)


def test_the_type_is_the_one_the_name_tells_when_it_is_not_given(tmp_path: Path) -> None:
    config = good("[chunking.markdown]\ntarget_tokens = 200\n", tmp_path)
    assert config.cut_settings(None, "a/b.md").target_tokens == 200
    assert config.cut_settings(None, b"a/b").target_tokens == 500


@pytest.mark.parametrize(
    ("text", "target", "most"),
    [
        ("max_tokens = 128", 128, 128),
        ("target_tokens = 1000", 1000, 1000),
        ("max_tokens = 600", 500, 600),
        ("", 500, 800),
    ],
)
def test_where_one_of_target_and_maximum_is_set_the_other_follows(
    tmp_path: Path, text: str, target: int, most: int
) -> None:
    settings = good(f"[chunking]\n{text}\n", tmp_path).cut_settings(None, "a", "text")
    assert (settings.target_tokens, settings.max_tokens) == (target, most)


def test_lines_are_found_through_tables_of_tables() -> None:
    text = '[a]\nx = 1\n[[root]]\npath = "p"\n[[root.rule]]\nglob = "g"\n'
    text += '[[root]]\n"path" = "q"\n[[root.rule]]\n  glob="h"'
    lines = lines_of(text)
    assert lines["a", "x"] == 2
    assert lines["root", 0, "rule", 0, "glob"] == 6
    assert lines["root", 1, "path"] == 8
    assert lines["root", 1, "rule", 0, "glob"] == 10
