"""Queries of users, and the tool that each should find."""

import pytest
from todo import board

board.prepare()  # otherwise the first searches run before all vectors are computed

QUERIES = [
    ("remind me to call Ann", "add_task"),
    ("what is left to do?", "list_tasks"),
    ("the milk is bought, tick it off", "finish_task"),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_a_query_finds_the_right_tool(query, expected):
    assert board.search(query)[0].tool.name == expected


def test_an_unrelated_query_finds_nothing():
    assert board.search("who won the football match") == []
