"""What people say, and the tool that they should get."""

import pytest
from todo import board

ASKED = [
    ("remind me to call Ann", "add_task"),
    ("what is left to do?", "list_tasks"),
    ("the milk is bought, tick it off", "finish_task"),
]


@pytest.mark.parametrize(("said", "wanted"), ASKED)
def test_a_tool_is_found_by_what_people_say(said, wanted):
    assert board.search(said)[0].tool.name == wanted


def test_what_the_board_cannot_do_finds_nothing():
    assert board.search("who won the football match") == []
