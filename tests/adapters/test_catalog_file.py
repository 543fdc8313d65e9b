"""Catalogs in files: the three forms, the optional keys, and what is wrong with a bad one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pegboard import ConfigError, Pegboard, UpstreamUnavailable
from pegboard.adapters.catalog_file import CatalogFile

ECHO: dict[str, Any] = {
    "name": "echo",
    "description": "Say it again. Loudly.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
}
FIND: dict[str, Any] = {"name": "find", "server": "library", "category": "books"}


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "catalog.json"
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"tools": [ECHO, FIND], "nextCursor": None}),
        json.dumps([ECHO, FIND], indent=2),
        "\n".join(json.dumps(tool) for tool in (ECHO, FIND)),
        "\n" + "\n\n".join(json.dumps(tool) for tool in (ECHO, FIND)) + "\n",
        "\ufeff" + json.dumps([ECHO, FIND]),
    ],
    ids=["tools/list", "list", "lines", "lines with gaps", "byte order mark"],
)
def test_every_form_gives_the_same_tools(tmp_path: Path, text: str) -> None:
    echo, find = CatalogFile.read(written(tmp_path, text)).tools
    assert (echo.id, echo.summary, echo.risk) == ("echo", "Say it again", "read")
    assert echo.input_schema == ECHO["inputSchema"]
    assert (find.id, find.server, find.category) == ("library.find", "library", "books")
    assert find.input_schema == {"type": "object"}


def test_one_line_is_a_catalog_too(tmp_path: Path) -> None:
    assert [t.name for t in CatalogFile.read(written(tmp_path, json.dumps(ECHO))).tools] == ["echo"]


def test_a_given_id_stands(tmp_path: Path) -> None:
    tools = CatalogFile.read(written(tmp_path, json.dumps([{**FIND, "id": "own"}]))).tools
    assert tools[0].id == "own"


def test_unicode_line_separators_inside_texts_do_not_end_a_line(tmp_path: Path) -> None:
    lines = "\n".join(
        json.dumps({**tool, "description": "a\u2028b\x85c"}, ensure_ascii=False)
        for tool in (ECHO, FIND)
    )
    assert len(CatalogFile.read(written(tmp_path, lines)).tools) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("5", "expected a tools/list result, a JSON list or JSON lines"),
        ('{"resources": []}', "expected a tools/list result"),
        ('{"tools": {}}', "expected a tools/list result"),
        ('[{"description": "x"}]', "tool 1: a tool is an object with a `name`"),
        ('[{"name": "a"}, 5]', "tool 2: a tool is an object with a `name`"),
        ('[{"name": "a", "inputSchema": {"type": "array"}}]', "tool 1: .*type 'object'"),
        ('[{"name": "a", "description": 5}]', "tool 1: `description` must be text, not int"),
        ('[{"name": "a", "annotations": []}]', "`annotations` must be an object"),
        ('[{"name": "a"}, {"name": "a"}]', "tool 2: there is already a tool 'a'.*own `id`"),
        ('{"name": "a"}\n{"name": ', "line 2: not JSON"),
    ],
)
def test_a_bad_file_says_where_and_what(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=message) as caught:
        CatalogFile.read(path)
    assert str(path) in caught.value.message


def test_a_file_that_cannot_be_read_is_an_error_of_configuration(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Cannot read the catalog"):
        CatalogFile.read(tmp_path / "missing.json")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match="Cannot read the catalog"):
        CatalogFile.read(tmp_path / "binary")


@pytest.mark.anyio
async def test_a_board_of_a_file_is_listed_searched_and_described_but_not_called(
    tmp_path: Path,
) -> None:
    board = Pegboard.from_catalog(written(tmp_path, json.dumps([ECHO, FIND])))
    assert board.name == "catalog"
    assert [t.name for t in board.tools()] == ["echo", "find"]
    assert board.search("say again")[0].tool.name == "echo"
    assert board.describe("books.find")[0].server == "library"
    with pytest.raises(UpstreamUnavailable, match="only described here"):
        await board.call("echo", {"text": "hi"})
