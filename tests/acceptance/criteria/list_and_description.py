"""Criteria of the design REQ-015: List and description."""

from __future__ import annotations

from tests.acceptance import figures
from tests.acceptance.criteria import Criterion, Design

DESIGN = Design(
    "REQ-015",
    "List and description",
    "list-and-description",
    (
        Criterion(
            "015.1",
            "The list has every tool with name, summary, category and state",
            tests=(
                "acceptance/test_list_and_description.py::test_a_large_listing_pages_by_category_and_does_not_flood",
            ),
        ),
        Criterion(
            "015.1",
            "Summaries have at most 80 characters; longer ones are rejected",
            tests=(
                "acceptance/test_list_and_description.py::test_what_a_registration_gets_wrong_is_said_before_anybody_connects",
            ),
        ),
        Criterion(
            "015.1",
            "The list can be filtered by category",
            tests=(
                "acceptance/test_list_and_description.py::test_a_large_listing_pages_by_category_and_does_not_flood",
            ),
        ),
        Criterion(
            "015.1",
            "Twelve tools are listed within 500 tokens",
            tests=(
                "acceptance/test_list_and_description.py::test_a_listing_of_twelve_tools_costs_at_most_500_tokens",
            ),
            figure=figures.twelve_listed,
        ),
        Criterion(
            "015.1",
            "The list takes less than 100 ms",
            tests=(
                "acceptance/test_limits.py::test_listing_and_describing_take_less_than_a_tenth_of_a_second",
            ),
            limit="100 ms",
        ),
        Criterion(
            "015.2",
            "A description has parameters, examples and related tools",
            tests=(
                "acceptance/test_list_and_description.py::test_a_description_has_parameters_examples_and_related_tools",
            ),
        ),
        Criterion(
            "015.2",
            "Examples are real calls that work",
            tests=("examples/test_both_servers.py::test_every_example_works_on_the_demo_data",),
        ),
        Criterion(
            "015.2",
            "The error for an unknown name suggests the nearest one",
            tests=(
                "acceptance/test_list_and_description.py::test_an_unknown_tool_is_answered_with_the_nearest",
            ),
        ),
        Criterion(
            "015.2",
            "A description takes less than 100 ms",
            tests=(
                "acceptance/test_limits.py::test_listing_and_describing_take_less_than_a_tenth_of_a_second",
            ),
            limit="100 ms",
        ),
        Criterion(
            "015.3",
            "Every tool has a complete set of metadata",
            tests=(
                "examples/test_both_servers.py::test_every_tool_has_an_example_and_related_tools",
            ),
            figure=figures.complete_metadata,
        ),
        Criterion(
            "015.3",
            "Examples may be written as the text of a call, and are checked",
            tests=(
                "acceptance/test_examples_as_text.py::test_examples_as_the_design_writes_them_are_shown_as_arguments",
            ),
        ),
        Criterion(
            "015.3",
            "Disabled and deprecated tools are marked",
            tests=(
                "acceptance/test_helpful_answers.py::test_a_tool_that_is_switched_off_is_marked_where_it_is_described",
            ),
        ),
        Criterion(
            "015.4",
            "Tools can be called by name without reading a description first",
            tests=(
                "acceptance/test_list_and_description.py::test_a_listed_tool_is_called_by_its_name",
            ),
        ),
        Criterion(
            "Performance tests",
            "A description with examples costs less than 400 tokens, for every tool",
            figure=figures.largest_description,
        ),
        Criterion(
            "Performance tests",
            "So does `describe_tools` in `proxy` mode",
            figure=figures.largest_describe_tools,
        ),
        Criterion(
            "Performance tests",
            "List and description save 47% of listing everything",
            tests=(
                "acceptance/test_list_and_description.py::test_list_describe_and_call_cost_less_than_half_of_listing_everything",
            ),
            figure=figures.index_saved,
        ),
    ),
)
