"""Criteria of the design PRD: Search and enable."""

# ruff: noqa: E501 one line for each criterion

from __future__ import annotations

from tests.acceptance import figures
from tests.acceptance.criteria import Criterion, Design

DESIGN = Design(
    "PRD",
    "Search and enable",
    "search-and-enable",
    (
        Criterion(
            "Problem",
            "The whole list costs tens of thousands of tokens",
            figure=figures.whole_tracker_list,
        ),
        Criterion(
            "Approach D.1",
            "A session starts with the always-available tools and a search",
            tests=(
                "acceptance/test_search_and_enable.py::test_at_first_there_are_the_pins_and_a_search",
            ),
            figure=figures.first_dynamic_list,
        ),
        Criterion(
            "Approach D.3",
            "A search enables what it finds and notifies the client once",
            tests=(
                "acceptance/test_search_and_enable.py::test_a_search_enables_what_it_finds_and_says_so_once",
            ),
        ),
        Criterion(
            "Approach D.6",
            "An enabled tool is listed with its full input schema",
            tests=(
                "acceptance/test_whole_categories.py::test_listed_tools_carry_input_schemas_alone",
            ),
        ),
        Criterion(
            "Search",
            "A search returns names and descriptions of the best matches",
            tests=("acceptance/test_search_and_enable.py::test_a_search_costs_little",),
        ),
        Criterion(
            "Search",
            "A search enables up to 20 tools",
            tests=(
                "acceptance/test_whole_categories.py::test_any_other_search_enables_at_most_five_tools",
            ),
            decision="decisions/modes.md",
        ),
        Criterion(
            "Search",
            'Words that are not in the name also find the tool ("bug report")',
            tests=(
                "acceptance/test_search_and_enable.py::test_a_search_enables_what_it_finds_and_says_so_once",
            ),
        ),
        Criterion(
            "Interaction flow",
            "A search for a category enables all of its tools",
            tests=(
                "acceptance/test_whole_categories.py::test_a_search_for_a_category_enables_all_of_it",
            ),
        ),
        Criterion(
            "Always available",
            "`ALWAYS_AVAILABLE_TOOLS` names tools that are always listed",
            tests=(
                "acceptance/test_search_and_enable.py::test_always_available_tools_come_from_the_environment",
            ),
        ),
        Criterion(
            "Always available",
            "A wrong name there gives a clear error message",
            tests=(
                "acceptance/test_the_way_back.py::test_a_slip_in_the_environment_is_a_message_and_no_traceback",
            ),
        ),
        Criterion(
            "Session state",
            "Enabled tools accumulate for the session",
            tests=(
                "acceptance/test_search_and_enable.py::test_enabled_tools_accumulate_and_pins_stay",
            ),
        ),
        Criterion(
            "Session state",
            "Over stateless HTTP everything is listed",
            tests=(
                "acceptance/test_search_and_enable.py::test_in_the_modern_era_the_list_does_not_change_with_use",
            ),
            decision="decisions/modes.md",
        ),
        Criterion(
            "Fallback",
            "`list_tool_categories`, `search_tools` and `invoke_tool` serve clients without notifications",
            tests=(
                "acceptance/test_search_and_enable.py::test_the_names_of_the_earlier_system_work_in_every_session",
            ),
        ),
        Criterion(
            "Fallback",
            "Tools that are not listed can be called too",
            tests=(
                "acceptance/test_search_and_enable.py::test_what_is_not_enabled_is_callable_all_the_same",
            ),
        ),
        Criterion(
            "Token budget",
            "One search costs 500 to 2,000 tokens, including the definitions that it adds",
            tests=(
                "acceptance/test_whole_categories.py::test_any_other_search_enables_at_most_five_tools",
            ),
            figure=figures.search_overhead,
        ),
        Criterion(
            "Token budget",
            "The static fallback starts with about 500 tokens",
            figure=figures.proxy_list,
        ),
        Criterion(
            "Category metadata",
            "Every category has a description",
            tests=(
                "acceptance/test_search_and_enable.py::test_the_names_of_the_earlier_system_work_in_every_session",
            ),
        ),
        Criterion(
            "Open question 4",
            "The number of enabled tools is limited",
            tests=(
                "server/test_dynamic.py::test_tools_beyond_the_cap_make_room_least_recently_used_first",
            ),
            decision="decisions/modes.md",
        ),
    ),
)
