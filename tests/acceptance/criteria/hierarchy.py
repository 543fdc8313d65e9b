"""Criteria of the design ADR-003: Hierarchy and dispatch."""

# ruff: noqa: E501 one line for each criterion

from __future__ import annotations

from tests.acceptance import figures
from tests.acceptance.criteria import Criterion, Design

DESIGN = Design(
    "ADR-003",
    "Hierarchy and dispatch",
    "hierarchical-dispatch",
    (
        Criterion(
            "Tier 1",
            "Four meta-tools stand for any number of tools",
            tests=(
                "acceptance/test_hierarchical_dispatch.py::test_four_schemas_stand_in_front_of_any_catalog",
            ),
            figure=figures.four_schemas,
        ),
        Criterion(
            "Tier 1",
            "A model goes from categories to tools to one schema",
            tests=(
                "acceptance/test_hierarchical_dispatch.py::test_the_way_leads_from_categories_to_a_schema",
            ),
        ),
        Criterion(
            "Tier 1",
            "`tools_dispatch` runs a tool by category and name, and returns its result",
            tests=(
                "acceptance/test_hierarchical_dispatch.py::test_a_dispatched_call_gives_the_tools_own_result",
            ),
        ),
        Criterion(
            "Lazy loading",
            "A category is loaded when it is used, and no other category is",
            tests=(
                "acceptance/test_categories_load_alone.py::test_only_the_category_that_is_named_is_loaded",
            ),
        ),
        Criterion(
            "Lazy loading",
            "Schemas are generated on first access and cached, and the least recently used are evicted first",
            tests=(
                "core/test_caches.py::test_a_schema_is_generated_once_and_then_cached",
                "core/test_caches.py::test_the_least_recently_used_schema_is_evicted_first",
            ),
        ),
        Criterion(
            "Dispatch",
            "Inputs are validated before the call",
            tests=(
                "acceptance/test_hierarchical_dispatch.py::test_a_wrong_turn_is_answered_with_what_would_be_right",
            ),
        ),
        Criterion(
            "Dispatch",
            "A tool that keeps failing is not called for a while",
            tests=(
                "acceptance/test_hierarchical_dispatch.py::test_after_five_failures_the_breaker_answers_at_once_with_what_works",
            ),
        ),
        Criterion(
            "Dispatch",
            "It is retried automatically",
            tests=(
                "acceptance/test_hierarchical_dispatch.py::test_a_breaker_recovers_by_itself_when_the_backend_is_back",
            ),
        ),
        Criterion(
            "Consequences",
            "The error for a tool in the wrong category names the right one",
            tests=(
                "acceptance/test_helpful_answers.py::test_a_wrong_category_for_a_real_tool_is_answered_with_the_right_one",
            ),
        ),
        Criterion(
            "Consequences",
            "A new tool needs no entry in a global table",
            tests=(
                "acceptance/test_list_and_description.py::test_a_registered_function_brings_its_metadata",
            ),
        ),
        Criterion(
            "Consequences",
            "Tools can be found without knowing their category",
            tests=(
                "acceptance/test_categories_load_alone.py::test_a_bare_name_is_looked_for_everywhere",
            ),
        ),
        Criterion(
            "Neutral",
            "Results of parallel calls are in order, each with its own error",
            tests=(
                "acceptance/test_hierarchical_dispatch.py::test_outcomes_come_in_the_order_of_the_calls_each_with_its_own_error",
                "acceptance/test_hierarchical_dispatch.py::test_sixteen_slow_calls_take_little_more_than_one",
            ),
        ),
    ),
)
