"""Which best matches are shown as "No tool clearly does this", by operation words."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from pegboard.core.search.relevance import (
    SURE_SCORE,
    WEAK_SCORE,
    display_score,
    find_requested_operation,
    is_near_miss,
    is_other_operation,
)
from pegboard.core.tools import Tool

MakeTool = Callable[..., Tool]


@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("drop the customers table", "describe_table"),
        ("please delete last year's folder", "list_folders"),
        ("get rid of the whole board", "get_board"),
        ("could you throw the old report away", "create_report"),
        ("merge PR 45", "get_pull_request"),
        ("list my invoices", "create_invoice"),
        ("show the ticket", "delete_ticket"),
        ("create a ticket", "delete_ticket"),
        ("delete the comment", "add_comment"),
        ("which pages are there", "updatePage"),
    ],
)
def test_a_tool_with_another_operation_is_a_near_miss(
    make_tool: MakeTool, query: str, tool: str
) -> None:
    assert is_other_operation(query, make_tool(tool))


@pytest.mark.parametrize(
    ("query", "tool"),
    [
        ("drop the customers table", "delete_table"),
        ("remove Bob from the channel", "update_members"),  # an update may well remove
        ("the customers table is no longer needed", "describe_table"),
        ("do not delete the table, describe it", "describe_table"),
        ("describe the table without dropping it", "describe_table"),
        ("open the report", "get_report"),
        ("open a ticket", "create_ticket"),
        ("run the query", "search_rows"),
        ("how much did we spend", "get_profit_and_loss"),
        ("delete the table", "tables"),  # a name without a verb
        ("customers", "delete_customer"),
        ("", "get_table"),
        ("please", "get_table"),
        ("Lösche die Tabelle", "describe_table"),
    ],
)
def test_in_doubt_it_is_no_near_miss(make_tool: MakeTool, query: str, tool: str) -> None:
    assert not is_other_operation(query, make_tool(tool))


def test_the_operation_counts_up_to_a_score_that_leaves_no_doubt(make_tool: MakeTool) -> None:
    tool, other = make_tool("describe_table"), make_tool("drop_table")
    sure, unsure = display_score(SURE_SCORE + 0.01), display_score(SURE_SCORE - 0.01)
    assert is_near_miss("drop the table", tool, unsure)
    assert not is_near_miss("drop the table", tool, sure)
    assert not is_near_miss("drop the table", tool, 1.0)  # it was named
    assert not is_near_miss("drop the table", other, unsure)
    assert is_near_miss("drop the table", other, WEAK_SCORE - 0.01)


def test_the_name_of_the_server_is_not_the_operation(make_tool: MakeTool) -> None:
    tool = make_tool("search_delete_items", server="search")
    assert not is_other_operation("delete the items", tool)


@pytest.mark.parametrize("query", ["a" * 100_000, "throw " * 20_000, "call " + "x " * 50_000])
def test_long_queries_are_read_in_no_time(query: str) -> None:
    began = time.process_time()
    assert find_requested_operation(query) is None
    assert time.process_time() - began < 0.5
