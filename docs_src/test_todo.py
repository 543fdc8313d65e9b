"""Tests of the server in the tutorial."""

import anyio
import pytest
from todo import board

from pegboard import InvalidArguments, count_tokens


def test_a_query_in_everyday_words_finds_the_tool():
    assert board.search("remind me to buy milk")[0].tool.name == "add_task"


def test_a_task_is_added_and_finished():
    async def session():
        added = await board.call("add_task", {"title": "Buy milk"})
        done = await board.call("finish_task", {"id": added.output["id"]})
        return done.output

    assert anyio.run(session)["done"] is True


def test_a_wrong_priority_is_rejected_before_the_tool_runs():
    with pytest.raises(InvalidArguments, match="priority"):
        anyio.run(board.call, "add_task", {"title": "x", "priority": "soonish"})


def test_definitions_stay_small():
    assert sum(count_tokens(tool) for tool in board.tools()) < 400


def test_the_board_is_valid():
    board.check()  # examples are valid calls; related tools and pins exist
