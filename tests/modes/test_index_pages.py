"""The `index` mode above its budget: pages by category, none flooding, none lost."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegboard import InvalidArguments, Pegboard, ToolNotFound
from pegboard.core.tools import Tool, constant_definition
from pegboard.modes.auto import MODES_BY_NAME

pytestmark = pytest.mark.anyio


def board(sizes: Mapping[str, int], page_tokens: int) -> Pegboard:
    """So many tools in each category."""
    made = Pegboard("shelf", page_tokens=page_tokens)
    for category, size in sizes.items():
        for n in range(size):
            made.add(
                Tool(
                    f"{category}_{n:03}",
                    constant_definition({"type": "object"}),
                    category=category,
                    summary=f"Does thing number {n} of {category}",
                )
            )
    return made


async def page(made: Pegboard, **arguments: Any) -> Any:
    view = await made.view()
    answer = (
        await MODES_BY_NAME["index"]
        .builders(view)["list_available_tools"](view)
        .answer(view, arguments)
    )
    return json.loads(answer.content[0]["text"])


async def walk(made: Pegboard) -> list[str]:
    """Everything that a client finds who follows `next` and then asks for the other categories."""
    first = await page(made)
    names = [row["name"] for row in first["tools"]]
    for category in first["categories"]:
        asked = category if isinstance(category, str) else category["name"]
        while asked:
            answer = await page(made, category=asked)
            names += [row["name"] for row in answer["tools"]]
            asked = answer.get("next")
    return names


async def test_a_first_group_that_is_too_large_leads_to_its_next_page_in_any_order() -> None:
    # The category that was added first is not the first in the order of pages.
    answer = await page(board({"small": 1, "large": 60}, 300))
    assert {row["category"] for row in answer["tools"]} == {"large"}
    assert answer["next"] == "large#2"


async def test_a_small_catalog_comes_whole() -> None:
    answer = await page(board({"a": 3, "b": 2}, 1_500))
    assert len(answer["tools"]) == answer["total"] == 5
    assert "next" not in answer


async def test_whole_categories_come_first_and_next_names_the_one_to_go_on_with() -> None:
    made = board({"a": 10, "b": 10, "c": 10}, 300)
    first = await page(made)
    assert {row["category"] for row in first["tools"]} == {"a"}
    assert first["next"] == "b"
    assert first["total"] == 30
    assert {row["category"] for row in (await page(made, category="b"))["tools"]} == {"b"}


async def test_a_category_that_is_large_itself_has_pages_of_its_own() -> None:
    made = board({"big": 100}, 500)
    first = await page(made)
    assert 0 < len(first["tools"]) < 100
    assert first["next"] == "big#2"
    second = await page(made, category="big#2")
    assert not {r["name"] for r in first["tools"]} & {r["name"] for r in second["tools"]}


async def test_a_page_that_does_not_exist_says_how_many_there_are() -> None:
    with pytest.raises(InvalidArguments, match=r"no page 99 of 'big': it has \d+"):
        await page(board({"big": 100}, 500), category="big#99")
    with pytest.raises(ToolNotFound, match="Nearest: big"):
        await page(board({"big": 3}, 500), category="bigg#2")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    sizes=st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 40), min_size=1),
    page_tokens=st.integers(1, 2_000),
)
async def test_no_tool_is_lost_and_no_page_floods(sizes: dict[str, int], page_tokens: int) -> None:
    made = board(sizes, page_tokens)
    assert set(await walk(made)) == {tool.name for tool in made.tools()}
    shown = (await page(made))["tools"]
    assert len(shown) == 1 or len(json.dumps(shown)) <= page_tokens * 4.5
