"""The fourth earlier system writes an example's invocation as the text of a call.

Theirs: `ToolExample(description, invocation: str, expected_output)`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.support import call, in_both_eras, play
from tests.conformance.clients import Era

from pegboard import ConfigError, Example, Pegboard
from pegboard.core.tools import Tool, constant_definition

AS_THEY_WRITE = [
    {
        "description": "Search for architecture principles",
        "invocation": "search_context(query='dependency injection', limit=3, strict=true)",
    },
    {"description": "General search", "invocation": "tools.search_context(query='errors')"},
    {"description": "As JSON", "invocation": '{"query": "tests"}'},
    Example("As arguments", {"query": "names"}),
]
READ = [
    {"query": "dependency injection", "limit": 3, "strict": True},
    {"query": "errors"},
    {"query": "tests"},
    {"query": "names"},
]


def search_context(query: str, limit: int = 10, strict: bool = False) -> list[str]:
    """Search semantic memory."""
    return [query] * limit


def board_with(*examples: Any) -> Pegboard:
    board = Pegboard("forge", mode="index")
    board.category("search").tool(examples=examples)(search_context)
    return board


@in_both_eras
def test_examples_as_the_design_writes_them_are_shown_as_arguments(era: Era) -> None:
    steps = {"described": call("get_tool_description", tool_name="search_context")}
    told = play(board_with(*AS_THEY_WRITE), era, steps)["described"].json
    assert [example["invocation"] for example in told["examples"]] == READ


def test_so_are_those_of_a_category_that_is_loaded_later() -> None:
    board = Pegboard("forge", mode="index")
    text: Any = "search_context(query='x')"
    tool = Tool(
        "search_context", constant_definition({"type": "object"}), examples=(Example("One", text),)
    )
    board.load("search", lambda: [tool])
    assert board.describe("search.search_context")[0].examples[0].invocation == {"query": "x"}


@pytest.mark.parametrize(
    ("invocation", "why"),
    [
        ("search_context('x')", "every argument needs its name in front"),
        ("search_context(**given)", "every argument needs its name in front"),
        ("search_context(query=other())", "'other()' is not a literal value"),
        ("search_beliefs(query='x')", "it calls 'search_beliefs'"),
        ("search for x", "it is neither a call nor JSON"),
        ("(" * 5_000, "it is neither a call nor JSON"),
        ("", "it is neither a call nor JSON"),
        ("[1]", "it is JSON, but not an object"),
        (["x"], "it is of type list"),
    ],
)
def test_one_that_cannot_be_read_is_refused_with_the_tool_and_what_to_write(
    invocation: Any, why: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        board_with({"description": "Wrong", "invocation": invocation})
    message = caught.value.message
    assert "'Wrong' of 'search_context'" in message
    assert why in message
    assert "search_context(name='value')" in message


def test_one_that_is_read_must_still_be_a_valid_call(tmp_path: Path) -> None:
    code = """
from pegboard import Pegboard
board = Pegboard("forge")

@board.tool(examples=[{"description": "Wrong", "invocation": "search(limit='many')"}])
def search(limit: int) -> int:
    "Search."
    return limit

board.run()
"""
    (tmp_path / "server.py").write_text(code, "utf-8")
    ended = subprocess.run(
        [sys.executable, "server.py"],
        cwd=tmp_path,
        env=dict(os.environ),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert ended.returncode == 3
    assert "error: The example 'Wrong' is not a valid call to search" in ended.stderr
    assert "Traceback" not in ended.stderr
