"""Tests of the tutorial's server, as its author would write them."""

import anyio
import pytest
from todo import board

from pegboard import InvalidArguments, count_tokens


def test_a_task_is_found_by_what_people_say():
    assert board.search("remind me to buy milk")[0].tool.name == "add_task"


def test_a_task_is_added_and_finished():
    async def session():
        added = await board.call("add_task", {"title": "Buy milk"})
        done = await board.call("finish_task", {"id": added.output["id"]})
        return done.output

    assert anyio.run(session)["done"] is True


def test_a_wrong_priority_is_refused_before_the_tool_runs():
    with pytest.raises(InvalidArguments, match="priority"):
        anyio.run(board.call, "add_task", {"title": "x", "priority": "soonish"})


def test_definitions_stay_small():
    assert sum(count_tokens(tool) for tool in board.tools()) < 400


def test_the_board_is_sound():
    board.check()  # examples are valid calls; related tools and pins exist
