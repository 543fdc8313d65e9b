"""Criteria of the design ADR-024: Lazy tool list."""

from __future__ import annotations

from tests.acceptance import figures
from tests.acceptance.criteria import Criterion, Design

DESIGN = Design(
    "ADR-024",
    "Lazy tool list",
    "lazy-list-and-projection",
    (
        Criterion(
            "Decision",
            "A list of stubs has a name and a short description for every tool",
            tests=(
                "acceptance/test_registry_and_stubs.py::test_a_stub_has_a_name_a_summary_and_a_schema_that_every_client_takes",
            ),
        ),
        Criterion(
            "Decision",
            "Stubs are what `tools/list` returns by default",
            tests=("modes/test_auto.py",),
            decision="decisions/modes.md",
        ),
        Criterion(
            "Decision",
            "`lazy: false` returns the full schemas, for the same tools",
            tests=(
                "acceptance/test_lazy_list_and_projection.py::test_the_list_is_lazy_or_whole_as_it_is_asked",
            ),
        ),
        Criterion(
            "Decision",
            "`tools/describe` returns the full schema of one tool",
            tests=("acceptance/test_registry_and_stubs.py::test_describe_is_complete",),
        ),
        Criterion(
            "Decision",
            "`tools/describe_batch` returns several and does not fail as a whole",
            tests=(
                "acceptance/test_registry_and_stubs.py::test_a_name_that_is_not_found_is_an_error_with_the_nearest",
            ),
        ),
        Criterion(
            "Rationale",
            "Existing clients keep working: one setting restores the full list",
            tests=("acceptance/test_the_way_back.py::test_the_environment_wins_over_code",),
        ),
        Criterion(
            "Rationale",
            "Calls do not depend on how the tool was listed",
            tests=(
                "acceptance/test_examples_in_every_mode.py::test_the_call_gives_the_data_whatever_the_mode",
            ),
        ),
        Criterion(
            "Token impact", "Twenty stubs cost 300 to 500 tokens", figure=figures.twenty_stubs
        ),
        Criterion(
            "Token impact",
            "Listing twenty stubs saves 90 to 96% of listing the full schemas",
            figure=figures.twenty_stubs_saved,
        ),
        Criterion(
            "Token impact",
            "In longer lists, a stub costs no more",
            tests=(
                "acceptance/test_registry_and_stubs.py::test_a_listing_of_stubs_stays_under_its_limit",
            ),
            figure=figures.stubs_per_list,
        ),
        Criterion(
            "Token impact",
            "Describing one tool costs about 200 tokens",
            figure=figures.average_describe,
        ),
    ),
)
