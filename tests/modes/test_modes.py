"""What holds for all modes: their names, their reserved names, and what their texts may cost."""

from __future__ import annotations

import pytest
from tests.boards import office_board

from pegboard import Pegboard, count_tokens
from pegboard.core.options import MODES
from pegboard.core.tools import Tool, constant_definition
from pegboard.modes.aliases import ALIASES
from pegboard.modes.auto import MODES_BY_NAME
from pegboard.modes.mode import META_TOOL_NAMES

pytestmark = pytest.mark.anyio


def test_every_mode_is_registered_under_its_own_name() -> None:
    assert tuple(MODES_BY_NAME) == MODES
    assert all(MODES_BY_NAME[name].name == name for name in MODES)


async def test_the_reserved_names_are_those_of_all_meta_tools() -> None:
    names: set[str] = set(ALIASES)
    for risk in ("split", "single"):
        view = await office_board(risk=risk).view()
        for mode in MODES_BY_NAME.values():
            names |= set(mode.builders(view))
    assert names == META_TOOL_NAMES


@pytest.mark.parametrize("mode", MODES)
async def test_a_mode_lists_the_same_twice_in_a_fixed_order(mode: str) -> None:
    listings = [
        await MODES_BY_NAME[mode].entries(await office_board(pins=["echo"]).view())  # type: ignore[index]
        for _ in range(2)
    ]
    assert listings[0] == listings[1]


@pytest.mark.parametrize("mode", ["proxy", "index", "hierarchy", "dynamic"])
async def test_what_a_mode_lists_does_not_depend_on_which_loaders_have_run(mode: str) -> None:
    board = office_board()
    before = await MODES_BY_NAME[mode].entries(await board.view(whole=False))  # type: ignore[index]
    assert board.catalog  # runs them
    after = await MODES_BY_NAME[mode].entries(await board.view())  # type: ignore[index]
    assert before == after
    # That there is more than is loaded can be seen, if not what: the line is short.
    assert any("+ tools: " in entry["description"] for entry in before)


def _large_board(tools: int) -> Pegboard:
    """Tools of all risks in categories with long names, none with a loader."""
    board = Pegboard("large", version="1")
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    risks = ({"readOnlyHint": True}, {"destructiveHint": False}, {"destructiveHint": True})
    for n in range(tools):
        board.add(
            Tool(
                f"tool_{n}",
                constant_definition(schema),
                id=f"c{n % 40}.tool_{n}",
                category=f"category_with_a_long_name_{n % 40}",
                annotations=risks[n % 3],
            )
        )
    return board


@pytest.mark.parametrize("tools", [30, 1_000])
async def test_the_proxy_list_costs_the_same_handful_of_tokens_whatever_the_size(
    tools: int,
) -> None:
    """REQUIREMENTS B6: at most 500 tokens with everything on."""
    entries = await MODES_BY_NAME["proxy"].entries(await _large_board(tools).view())
    cost = sum(
        count_tokens({k: entry[k] for k in ("name", "description", "inputSchema")})
        for entry in entries
    )
    assert cost <= 500


async def test_single_risk_has_one_call_tool_annotated_as_the_worst() -> None:
    view = await office_board(risk="single").view()
    calls = [e for e in await MODES_BY_NAME["proxy"].entries(view) if e["name"].startswith("call_")]
    assert [e["name"] for e in calls] == ["call_tool"]
    assert all(e["annotations"]["destructiveHint"] for e in calls)


async def test_risk_is_not_split_where_no_tool_says_anything_of_it() -> None:
    board = Pegboard("plain")
    board.add(Tool("one", constant_definition({"type": "object"})))
    names = [e["name"] for e in await MODES_BY_NAME["proxy"].entries(await board.view())]
    assert "call_write_tool" not in names


async def test_whether_risk_is_split_is_decided_once_and_gives_all_call_tools() -> None:
    board = Pegboard("reader")
    hints = {"readOnlyHint": True}
    board.add(Tool("one", constant_definition({"type": "object"}), annotations=hints, risk="read"))
    before = await MODES_BY_NAME["proxy"].entries(await board.view())
    board.disable("one")
    board.add(Tool("two", constant_definition({"type": "object"}), risk="destructive"))
    after = await MODES_BY_NAME["proxy"].entries(await board.view())
    calls = ["call_tool", "call_write_tool", "call_destructive_tool"]
    for entries in (before, after):
        assert [e["name"] for e in entries if e["name"].startswith("call_")] == calls
