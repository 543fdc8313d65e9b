"""Measurements of a board: counted through the real modes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.boards import office_board

from pegboard import Pegboard, count_tokens
from pegboard.core.options import MODES
from pegboard.core.tools import Tool, constant_definition
from pegboard.errors import ConfigError
from pegboard.measure.measurement import find_expensive_tools, measure
from pegboard.measure.mode_costs import count_list_tokens, sample_evenly
from pegboard.measure.result_costs import read_results
from pegboard.measure.session_costs import SessionProfile

pytestmark = pytest.mark.anyio


async def test_every_mode_is_measured_and_the_json_has_the_agreed_shape() -> None:
    value = (await measure(office_board())).to_json()
    assert value["tokenizer"] == "o200k_base"
    assert list(value["modes"]) == list(MODES)
    for cost in value["modes"].values():
        assert {"list", "first_definition", "session"} <= set(cost)
    assert [set(s) for s in value["servers"]] == [{"name", "tools", "tokens"}]
    assert json.loads(json.dumps(value)) == value


async def test_eager_lists_everything_at_once() -> None:
    board = office_board()
    measured = await measure(board)
    assert measured.modes["eager"].entries == len(board.tools())
    assert measured.modes["eager"].first_definition == 0
    assert measured.everything == await count_list_tokens(board, "eager")


async def test_the_list_of_a_mode_is_what_its_clients_are_shown() -> None:
    from pegboard.core.calls import Caller
    from pegboard.server.tool_methods import ToolMethods, ToolRequest

    for mode in MODES:
        board = office_board(mode=mode)
        answer = await ToolMethods(board).answer(
            ToolRequest("tools/list", {}, Caller(era="legacy"))
        )
        assert answer is not None
        read = [
            {k: e[k] for k in ("name", "description", "inputSchema") if k in e}
            for e in answer["tools"]
        ]
        assert await count_list_tokens(office_board(), mode) == sum(count_tokens(e) for e in read)


async def test_finding_a_tool_costs_under_every_lazy_mode() -> None:
    measured = await measure(office_board())
    for mode in ("stub", "index", "hierarchy", "proxy", "dynamic"):
        assert measured.modes[mode].first_definition > 10
    assert measured.modes["dynamic"].finding.growth > 0
    assert measured.modes["proxy"].finding.growth == 0


async def test_the_configured_mode_does_not_decide_what_is_measured() -> None:
    one, other = await measure(office_board(mode="index")), await measure(office_board())
    assert one.modes == other.modes


async def test_servers_and_tools_add_up() -> None:
    measured = await measure(office_board())
    assert sum(s.tokens for s in measured.servers) == sum(t.tokens for t in measured.tools)
    assert sum(s.tools for s in measured.servers) == len(measured.tools)


async def test_an_empty_board_costs_nothing_to_list_whole() -> None:
    measured = await measure(Pegboard("empty"))
    assert measured.everything == 0
    assert measured.saved("proxy") == 0
    assert measured.servers == ()


async def test_the_other_tokenizer_is_named_and_counts_otherwise() -> None:
    measured = await measure(office_board(), tokenizer="cl100k_base")
    assert measured.tokenizer == "cl100k_base"
    with pytest.raises(ConfigError, match="Unknown tokenizer"):
        await measure(office_board(), tokenizer="words")


async def test_more_turns_cost_more() -> None:
    board = office_board()
    few, many = (
        await measure(board, use=SessionProfile(turns=5)),
        await measure(board, use=SessionProfile(turns=50)),
    )
    for mode in MODES:
        assert few.sessions[mode].cached < many.sessions[mode].cached


async def test_recorded_results_go_through_the_layers_that_real_ones_go_through(
    tmp_path: Path,
) -> None:
    rows = [{"identifier": n, "title": f"Issue {n}", "status": "open"} for n in range(40)]
    path = tmp_path / "results.jsonl"
    lines: list[dict[str, Any]] = [
        {"tool": "list_issues", "result": rows},
        {"tool": "elsewhere", "result": {"content": [{"type": "text", "text": "ok"}]}},
        {"tool": "other", "result": {"a": 1, "b": "x" * 400}, "include_fields": ["a"]},
    ]
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    measured = await measure(office_board(), recorded=read_results(path))
    table, plain, projected = measured.results
    assert table.given < table.whole
    assert plain.given == plain.whole == 1
    assert projected.given < projected.whole / 5
    assert measured.to_json()["results"]["saved"] > 0


@pytest.mark.parametrize("line", ["{", "[]", '{"tool": "x"}', "1"])
def test_a_line_that_is_no_result_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"tool": "x", "result": 1}\n' + line + "\n")
    with pytest.raises(ConfigError, match=r"r\.jsonl:2"):
        read_results(path)


def test_the_most_expensive_tools_have_reasons() -> None:
    colours = {"type": "string", "enum": [f"colour{n}" for n in range(8)]}
    deep: dict[str, Any] = {"type": "object", "properties": {"leaf": {"type": "string"}}}
    for _ in range(4):
        deep = {"type": "object", "properties": {"inside": deep}}
    tools = [
        _tool("talks", {}, description="word " * 400),
        _tool("paints", {"a": colours, "b": colours}),
        _tool("digs", {"root": deep}),
        _tool("explains", {"x": {"type": "string", "description": "word " * 400}}),
        _tool("promises", {}, output={"type": "object", "description": "word " * 400}),
        _tool("small", {}),
    ]
    found = {
        d.id: [r.kind for r in d.reasons]
        for d in find_expensive_tools(tools, count_tokens, count_tokens)
    }
    assert found["talks"] == ["long description"]
    assert found["paints"] == ["repeated enum"]
    assert found["digs"] == ["deep schema"]
    assert found["explains"] == ["long parameters"]
    assert found["promises"] == ["output schema"]
    assert found["small"] == []


def test_a_sample_is_spread_evenly() -> None:
    tools = [_tool(str(n), {}) for n in range(100)]
    assert [t.name for t in sample_evenly(tools, 4)] == ["0", "25", "50", "75"]
    assert sample_evenly(tools[:3], 10) == tools[:3]


async def test_seventy_servers_are_measured_within_two_seconds() -> None:
    board = Pegboard("many")
    for server in range(70):
        for n in range(10):
            tool = _tool(f"tool_{n}", {"query": {"type": "string", "description": "What for."}})
            board.add(Tool(tool.name, tool.definition, server=f"s{server}", summary=f"Do {n}"))
    count_tokens("warm")
    began = time.perf_counter()
    measured = await measure(board)
    assert time.perf_counter() - began < 2
    assert len(measured.servers) == 70


def _tool(
    name: str,
    properties: dict[str, Any],
    *,
    description: str = "",
    output: dict[str, Any] | None = None,
) -> Tool:
    schema = {"type": "object", "properties": properties}
    return Tool(name, constant_definition(schema, output), description=description)
