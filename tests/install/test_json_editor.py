"""Laws of changing JSON with comments as text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pegboard.config.documents import parse_document
from pegboard.install import json_editor
from pegboard.install.config_editor import add_server, copy_servers, remove_servers

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=6)
ENTRIES = st.dictionaries(NAMES, st.one_of(st.text(max_size=6), st.integers(), st.none()))
SERVERS = st.dictionaries(NAMES, ENTRIES, max_size=5)
FILLERS = st.sampled_from(
    ["", " ", "\n", "\n\t", '  // a, "b"\n', "/* }, { */", "\r\n  ", "/* \n */\n"]
)
PATH = Path("mcp.json")


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A table of servers with comments and space wherever they may be."""
    servers = draw(SERVERS)

    def gap() -> str:
        return draw(FILLERS)

    def member(key: str, value: Any) -> str:
        body = json.dumps(value, indent=draw(st.sampled_from([None, 1])))
        return f"{gap()}{json.dumps(key)}{gap()}:{gap()}{body}{gap()}"

    parts = [member(key, value) for key, value in servers.items()]
    trailing = "," + gap() if parts and draw(st.booleans()) else ""
    table = "{" + ",".join(parts) + trailing + gap() + "}"
    text = f'{gap()}{{{gap()}"t"{gap()}:{gap()}{table}{gap()}}}{gap()}'
    return text, servers


@given(texts(), st.data())
def test_dropping_and_putting_mean_what_they_say(
    made: tuple[str, dict[str, Any]], data: st.DataObject
) -> None:
    text, servers = made
    gone = data.draw(st.lists(st.sampled_from(sorted(servers)), unique=True)) if servers else []
    after = add_server(remove_servers(text, PATH, "t", gone), PATH, "t", "new", {"x": [1]})
    left = {k: v for k, v in servers.items() if k not in gone}
    assert parse_document(after, PATH).value == {"t": {**left, "new": {"x": [1]}}}


@given(texts())
@example(('{"t":{"a":{},/* , */"b":{}/* , */\n}}', {"a": {}, "b": {}}))
def test_copies_are_whole(made: tuple[str, dict[str, Any]]) -> None:
    text, servers = made
    copied = copy_servers('{\n  "t": {}\n}\n', PATH, "t", text, list(servers))
    assert parse_document(copied, PATH).value == {"t": servers}


@given(texts())
def test_a_file_without_trailing_commas_gets_none(made: tuple[str, dict[str, Any]]) -> None:
    _, servers = made
    strict = json.dumps({"t": servers, "z": 1}, indent=3)
    after = json_editor.put(json_editor.drop(strict, "t", list(servers)[1:]), "t", "new", {})
    assert "new" in json.loads(after)["t"]
