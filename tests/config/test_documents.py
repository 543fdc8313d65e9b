"""Texts become values that know their lines; what cannot be read says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.config.documents import KeyPath, parse_document, read_document
from pegboard.errors import ConfigError

Write = Callable[[str, str], Path]

JSONC = """{
  // where // things are
  "servers": {
    "a": {"command": "x", /* not "yet" */ "args": ["--url", "http://h//p", "y",]},
    "b": {
      "env": {"K\\"ey": "v, ]"},
    },
  },
}
"""


def test_json_may_have_comments_and_trailing_commas() -> None:
    document = parse_document(JSONC, Path("mcp.json"))
    assert document.value["servers"]["a"]["args"] == ["--url", "http://h//p", "y"]
    assert document.value["servers"]["b"]["env"] == {'K"ey': "v, ]"}


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("servers",), 3),
        (("servers", "a", "args", 2), 4),
        (("servers", "b"), 5),
        (("servers", "b", "env", 'K"ey'), 6),
        (("servers", "b", "missing", "deeper"), 5),
    ],
)
def test_json_keys_know_their_line(key: KeyPath, line: int) -> None:
    assert parse_document(JSONC, Path("mcp.json")).line(key) == line


TOML = """# top
mode = "proxy"
pins = [
  "a",
  "b",
]
text = \"\"\"
[servers.fake]
\"\"\"

[servers.real]
command = "x"
env = { A = "1", B = "2" }

[[keys]]
name = "k"
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        (("mode",), 2),
        (("pins",), 3),
        (("pins", 1), 3),
        (("text",), 7),
        (("servers",), 11),
        (("servers", "real"), 11),
        (("servers", "real", "env", "B"), 13),
        (("servers", "real", "nothing"), 11),
        (("keys", 0, "name"), 16),
    ],
)
def test_toml_keys_know_their_line(key: KeyPath, line: int) -> None:
    assert parse_document(TOML, Path("pegboard.toml")).line(key) == line


def test_yaml_keys_know_their_line() -> None:
    text = "extensions:\n  a:\n    cmd: x\n    args:\n      - one\n      - two\n"
    document = parse_document(text, Path("config.yaml"))
    assert document.line(("extensions", "a", "cmd")) == 3
    assert document.line(("extensions", "a", "args", 1)) == 6


@pytest.mark.parametrize(
    ("name", "text", "line", "reason"),
    [
        ("a.json", '{\n  "mcpServers": {\n    "x" 1\n  }\n}', 3, "expecting ':' delimiter"),
        ("a.json", '{\n  // note\n  "a": [1, 2\n}', 4, "expecting ',' delimiter"),
        ("a.json", '{\n  "a": "open\n}', 2, "invalid control character"),
        ("a.toml", "mode = 1\nmode = 2\n", 2, "Cannot overwrite a value"),
        ("a.toml", "[servers.a]\n[servers.a]\n", 2, "twice"),
        ("a.toml", "a = [\n1,\n", 3, "not valid TOML"),
        ("a.yaml", "a:\n  b: [1\nc: 2\n", 3, "not valid YAML"),
        ("a.yaml", "a: 1\na: 2\n", 2, "duplicate key"),
    ],
)
def test_a_syntax_error_names_file_line_and_reason(
    name: str, text: str, line: int, reason: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, Path(name))
    assert caught.value.message.startswith(f"{name}:{line}: ")
    assert reason in caught.value.message
    assert caught.value.details["line"] == line


def test_what_is_not_an_object_is_refused() -> None:
    with pytest.raises(ConfigError, match="an object is expected at the top, not list"):
        parse_document("[1]", Path("a.json"))


def test_an_empty_file_is_an_empty_object() -> None:
    assert parse_document("  \n", Path("a.json")).value == {}
    assert parse_document("", Path("a.yaml")).value == {}


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        parse_document('{"a":' * 100_000, Path("a.json"))


def test_a_file_that_is_not_there_a_folder_and_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.json: there is no such file"):
        read_document(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_document(tmp_path)
    (tmp_path / "b.json").write_bytes(b"\xff\xfe{\x00}\x00")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_document(tmp_path / "b.json")


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_document(tmp_path / "a.json").value == {"a": 1}


def test_repeated_keys_are_known_with_their_lines() -> None:
    text = '{"servers": {\n"a": {},\n"b": {"x": 1, "x": 2},\n"a": {}}}'
    document = parse_document(text, Path("a.json"))
    assert document.repeated(("servers",)) == {"a": [2, 4]}
    assert document.repeated(("servers", "b")) == {"x": [3, 3]}


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), values, max_size=4))
def test_comments_never_change_what_plain_json_says(value: dict[str, object]) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False)
    commented = "// first\n" + text + "\n/* last */"
    assert parse_document(commented, Path("a.json")).value == value


@given(st.dictionaries(st.text(), values, max_size=4))
def test_every_key_of_any_json_has_the_line_it_stands_on(value: dict[str, object]) -> None:
    text = json.dumps(value, indent=1)
    document = parse_document(text, Path("a.json"))
    lines = text.split("\n")
    for key in value:
        line = document.line((key,))
        assert line is not None
        assert lines[line - 1].startswith(f" {json.dumps(key)}: ")


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [*a]\n",
        "a: &a [x, x]\n"
        + "".join(
            f"k{n}: &k{n} [{', '.join([f'*k{n - 1}' if n else '*a'] * 9)}]\n" for n in range(9)
        ),
    ],
    ids=["endless", "billion laughs"],
)
def test_aliases_that_unfold_without_end_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too many parts"):
        parse_document(text, tmp_path / "servers.yaml")
