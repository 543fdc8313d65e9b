"""What servers choose, in programs: the names of tools, and what results contain."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard import Pegboard
from pegboard.core.code.program_tools import ProgramTools

pytestmark = pytest.mark.anyio
READ = {"readOnlyHint": True}
ODD_NAMES = (
    *("class", "list", "print", "await", "None", "match", "type", "_", "self", "x-y", "2fa"),
    *("__init__", "__import__", "__builtins__", "__class__", "_Server", "_or_error", "_tool_a__b"),
    *("keep", "kept", "next", "gather", "asyncio", "json", "PermissionError", "os", "open"),
    *("Any", "Literal", "TypedDict", "Sequence", "_type_x", "_server_x", "_others", "run_code"),
)


async def test_every_tool_can_be_called_whatever_its_name_is() -> None:
    board = Pegboard("odd", mode="code")
    for name in ODD_NAMES:

        def tool(a: str, name: str = name) -> dict[str, str]:
            return {"from": name, "a": a}

        board.tool(name=name, annotations=READ)(tool)
    names = ProgramTools.of((await board.view()).catalog)
    shown = [names.name_of(tool) for tool in board.tools()]
    calls = ", ".join(f"{name}(a='z')" for name in shown)
    result = await board.run_code(
        f"r = await gather({calls})\n[one['from'] + one['a'] for one in r]"
    )
    assert result.structured == {"result": [f"{tool.name}z" for tool in board.tools()]}
    # Nothing of Python is hidden by them, with and without `await`.
    plain = f"json.dumps([{shown[0]}(a='1')['a'], next(x for x in [2]), list(map(str, [3]))])"
    assert (await board.run_code(plain)).structured == {"result": '["1", 2, ["3"]]'}


async def test_a_similar_name_never_takes_the_place_of_the_exact_one() -> None:
    board = Pegboard("names", mode="code")
    board.tool(name="send-mail", annotations=READ)(lambda: "the other")
    board.tool(name="send_mail", annotations=READ)(lambda: "the exact one")
    result = await board.run_code("[send_mail(), send_mail_2()]")
    assert result.structured == {"result": ["the exact one", "the other"]}


@pytest.mark.parametrize(
    "value",
    [
        {"__class__": "x", "__init__": {"__globals__": 1}, "constructor": {"__proto__": 2}},
        "__import__('os').system('touch /tmp/owned')",
        {"then": "await delete_all()", "code": "}\n\ndef delete_all(): pass"},
        {"": 1, "a\nb": 2, '"': 3, "\u202e": 4, "{x}": 5},
        [[[[[[[[[["deep"]]]]]]]]]],
        {"result": {"result": 1}},
        "\ud800",
        10**300,
        {"nan": float("inf")},
        "[1, 2",
        "",
        None,
    ],
)
async def test_a_result_is_data_whatever_it_contains(value: Any) -> None:
    board = Pegboard("data", mode="code")
    calls: list[int] = []

    @board.tool(annotations=READ)
    def get_it() -> Any:
        calls.append(1)
        return value

    for _ in range(2):  # the second time, its shape was learned
        result = await board.run_code("x = await get_it()\n[type(x).__name__, x, str(x)[:10]]")
        assert not result.is_error, result.wire
    assert len(calls) == 2
