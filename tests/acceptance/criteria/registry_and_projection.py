"""Criteria of the design Phase 1: Registry, schema cache and field projection."""

from __future__ import annotations

from tests.acceptance import figures
from tests.acceptance.criteria import Criterion, Design

DESIGN = Design(
    "Phase 1",
    "Registry, schema cache and field projection",
    "registry-and-stubs",
    (
        Criterion(
            "1.1",
            "A loader runs on first use, and once",
            tests=(
                "acceptance/test_registry_and_stubs.py::test_a_loader_runs_on_first_use_and_once",
            ),
        ),
        Criterion(
            "1.1",
            "An unknown tool is a typed error",
            tests=(
                "acceptance/test_registry_and_stubs.py::test_the_same_error_in_process_is_typed",
            ),
        ),
        Criterion(
            "1.1",
            "Schemas are cached for five minutes; the cache reports hits, size and TTL",
            tests=(
                "acceptance/test_registry_and_stubs.py::test_a_schema_is_made_once_and_then_comes_from_the_cache",
                "acceptance/test_registry_and_stubs.py::test_the_cache_has_the_capacity_and_the_time_that_a_board_gives_it",
            ),
        ),
        Criterion(
            "1.2",
            "`tools/list` returns stubs, under 500 tokens for twenty tools",
            figure=figures.twenty_stubs,
        ),
        Criterion(
            "1.2",
            "`tools/describe` returns both schemas, under 1,000 tokens for every tool",
            tests=("acceptance/test_registry_and_stubs.py::test_describe_is_complete",),
            figure=figures.largest_describe,
        ),
        Criterion(
            "1.2",
            "A batch continues if one name is wrong",
            tests=(
                "acceptance/test_registry_and_stubs.py::test_a_name_that_is_not_found_is_an_error_with_the_nearest",
            ),
        ),
        Criterion(
            "1.3",
            "Using `query_memory` and `create_episode` of twenty tools saves over 90% (search)",
            figure=figures.pair_by_search,
        ),
        Criterion(
            "1.3",
            "The same search without a limit",
            figure=figures.pair_by_default_search,
        ),
        Criterion(
            "1.3",
            "The same with stubs and two full definitions",
            figure=figures.pair_by_stubs,
            decision="decisions/two-of-twenty.md",
        ),
        Criterion(
            "1.3",
            "A first schema takes less than 20 ms",
            tests=(
                "acceptance/test_limits.py::test_a_first_schema_takes_less_than_twenty_milliseconds",
            ),
            limit="20 ms",
        ),
        Criterion(
            "1.3",
            "A cached schema takes less than 1 ms",
            tests=(
                "acceptance/test_limits.py::test_a_cached_schema_takes_less_than_a_millisecond",
            ),
            limit="1 ms",
        ),
        Criterion(
            "1.3",
            "More than 80% of lookups hit the cache",
            tests=(
                "core/test_caches.py::test_a_session_of_200_calls_over_20_tools_hits_more_than_four_times_in_five",
            ),
            figure=figures.cache_hit_rate,
        ),
        Criterion(
            "1.4",
            "Reference, best practices and a migration guide exist, and their examples run",
            tests=("docs/test_snippets.py",),
        ),
        Criterion(
            "2.1",
            "`project` keeps the requested fields; no fields mean all",
            tests=(
                "core/results/test_projection.py::test_no_fields_give_the_very_same_object",
                "acceptance/test_lazy_list_and_projection.py::test_the_functions_behind_it_can_be_used_alone",
            ),
        ),
        Criterion(
            "2.1",
            "Fields of a value that is not an object are rejected",
            tests=(
                "core/results/test_projection.py::test_fields_of_a_value_that_is_not_an_object_are_rejected",
            ),
        ),
        Criterion(
            "2.1",
            "`validate_fields` rejects names that are not in a list",
            tests=("core/results/test_output_fields.py::test_a_list_of_names_rejects_every_other",),
        ),
        Criterion(
            "2.2",
            "Every tool declares `include_fields`",
            tests=(
                "acceptance/test_fields_are_declared.py::test_it_is_declared_by_descriptions_and_whole_lists",
                "acceptance/test_fields_are_declared.py::test_it_is_a_parameter_of_a_tools_description",
            ),
        ),
        Criterion(
            "2.2",
            "An invalid field is rejected before the call, with a list of valid ones",
            tests=(
                "acceptance/test_lazy_list_and_projection.py::test_an_invalid_field_is_refused_with_those_that_there_are",
            ),
        ),
        Criterion(
            "2.3",
            "Every field of every tool is documented with type, description and example",
            tests=(
                "examples/test_both_servers.py::test_every_field_of_every_result_is_described",
                "docs/test_field_pages.py::test_a_page_is_up_to_date",
            ),
            figure=figures.fields_described,
        ),
        Criterion(
            "2.3",
            "A calculator shows how much a selection saves",
            tests=("cli/test_fields.py::test_a_selection_is_tried_on_a_saved_result",),
        ),
        Criterion(
            "2.4",
            "Three fields of an episode save over 90%, under 300 tokens",
            tests=(
                "acceptance/test_lazy_list_and_projection.py::test_three_fields_of_an_episode_save_over_nine_tenths",
            ),
            figure=figures.minimal_fields,
        ),
        Criterion(
            "2.4",
            "Selecting what was learned saves at least 20%",
            tests=(
                "acceptance/test_lazy_list_and_projection.py::test_what_was_learned_is_a_selection_too",
            ),
            figure=figures.learning_fields,
        ),
        Criterion(
            "2.4",
            "What was learned from five patterns costs under 800 tokens (smaller episode)",
            figure=figures.learning_of_five_patterns,
        ),
        Criterion(
            "2.4",
            "Selecting the status saves over 90%",
            tests=(
                "acceptance/test_lazy_list_and_projection.py::test_the_state_of_an_episode_is_a_handful_of_values",
            ),
            figure=figures.status_fields,
        ),
        Criterion(
            "2.4",
            "Without a selection, all twenty fields are returned",
            tests=(
                "acceptance/test_lazy_list_and_projection.py::test_no_fields_and_the_envelope_both_mean_everything",
            ),
        ),
        Criterion(
            "2.4",
            '`["id", "description"]` works on four different tools',
            tests=(
                "acceptance/test_fields_are_declared.py::test_an_id_and_a_description_can_be_had_of_every_tool",
            ),
        ),
        Criterion(
            "2.4",
            "Projection takes less than 1 ms",
            tests=(
                "acceptance/test_limits.py::test_projecting_an_episode_takes_less_than_a_millisecond",
            ),
            limit="1 ms",
        ),
        Criterion(
            "Rollout",
            "A change can be given to a share of callers first, and be reverted",
            tests=(
                "server/test_board_operations.py::test_a_rollout_is_begun_and_ended_on_the_page",
            ),
        ),
    ),
)
