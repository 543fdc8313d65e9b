"""The second earlier system: a lazy flag on the list, and field projection of episode records.

Theirs: `tools/list` with `lazy`, `list_all_tools`, `get_all_extended_tools`, `FieldProjection`,
`validate_fields`, field constants per tool.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.acceptance.support import (
    LIST,
    MODES,
    ask,
    call,
    in_both_eras,
    memory_board,
    play,
    play_on_stdio,
)
from tests.conformance.clients import Answer, Era, Scenario, Transcript

from examples.memory import RICH_EPISODE
from pegboard import Call, InvalidField, project, validate_fields
from pegboard.tokens import count_tokens

MINIMAL = ["id", "task_description", "outcome_type"]
LEARNING = ["id", "patterns", "reflection"]
STATUS = ["id", "status", "outcome_type", "duration_ms", "reward_score"]
EPISODE = {"episode_id": RICH_EPISODE}


def _steps() -> Scenario:
    def get(**more: Any) -> Any:
        return call("get_episode", **EPISODE, **more)

    return {
        "list": LIST,
        "whole": get(),
        "none": get(include_fields=[]),
        "minimal": get(include_fields=MINIMAL),
        "learning": get(include_fields=LEARNING),
        "status": get(include_fields=STATUS),
        "all": get(include_fields=["episode"]),
        "steps": get(include_fields=["steps[].tool", "steps[].success"]),
        "invalid": get(include_fields=["id", "outcome"]),
        "malformed": get(include_fields=["steps..tool"]),
        "as text": get(include_fields="id, status"),
    }


@pytest.fixture(scope="module", params=[(f, e) for f in MODES for e in ("legacy", "modern")])
def told(request: pytest.FixtureRequest) -> Transcript:
    """What a direct call with fields answers, in every mode."""
    mode, era = request.param
    return play(memory_board(), era, _steps(), mode=mode)


@in_both_eras
def test_the_list_is_lazy_or_whole_as_it_is_asked(era: Era) -> None:
    board = memory_board()
    told = play(
        board,
        era,
        {
            "lazy": ask("tools/list", lazy=True),
            "extended": ask("tools/list", lazy=False),
        },
    )
    names = {tool.name for tool in board.tools()}
    assert all({t["name"] for t in told[key].ok["tools"]} == names for key in told.answers)
    lazy, extended = (count_tokens(told[key].ok["tools"]) for key in ("lazy", "extended"))
    assert lazy < 0.15 * extended


def test_three_fields_of_an_episode_save_over_nine_tenths(told: Transcript) -> None:
    episode = _episode(told["minimal"])
    assert list(episode) == MINIMAL
    assert _tokens(told["whole"]) > 2_000
    assert _saved(told, "minimal") > 0.9


def test_what_was_learned_is_a_selection_too(told: Transcript) -> None:
    episode, whole = _episode(told["learning"]), _episode(told["whole"])
    assert episode == {key: whole[key] for key in LEARNING}
    assert _saved(told, "learning") > 0.2


def test_the_state_of_an_episode_is_a_handful_of_values(told: Transcript) -> None:
    episode = _episode(told["status"])
    assert list(episode) == STATUS
    assert not any(isinstance(value, (dict, list)) for value in episode.values())
    assert _saved(told, "status") > 0.9


def test_lists_are_mapped_over(told: Transcript) -> None:
    steps = _episode(told["steps"])["steps"]
    assert len(steps) == len(_episode(told["whole"])["steps"])
    assert all(set(step) == {"tool", "success"} for step in steps)


def test_no_fields_and_the_envelope_both_mean_everything(told: Transcript) -> None:
    assert told["none"].ok == told["whole"].ok
    assert told["all"].ok["structuredContent"] == told["whole"].ok["structuredContent"]
    assert len(_episode(told["whole"])) == 20


def test_an_invalid_field_is_refused_with_those_that_there_are(told: Transcript) -> None:
    error = told["invalid"].mendable
    assert error["kind"] == "invalid_field"
    assert error["message"].startswith("Invalid field: outcome.")
    assert "episode.outcome_type" in error["expected"]
    assert "episode.outcome_type" in error["nearest"]
    assert told["malformed"].mendable["kind"] == "invalid_field"


def test_fields_in_one_text_are_understood(told: Transcript) -> None:
    assert list(_episode(told["as text"])) == ["id", "status"]


def test_text_and_structured_content_stay_equal(told: Transcript) -> None:
    for key in ("minimal", "learning", "status", "steps"):
        result = told[key].ok
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


@in_both_eras
def test_on_standard_input_and_output_it_is_the_same(era: Era) -> None:
    told = play_on_stdio("examples.memory", era, _steps(), mode="eager")
    assert _saved(told, "minimal") > 0.9
    assert told["invalid"].mendable["kind"] == "invalid_field"


def test_the_functions_behind_it_can_be_used_alone() -> None:
    record = {"episode": {"id": 1, "steps": [{"tool": "grep", "note": "x"}]}, "took": 3}
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    assert project(record, ["steps.tool"], root="episode") == {
        "episode": {"steps": [{"tool": "grep"}]},
        "took": 3,
    }
    validate_fields(["id"], schema)
    with pytest.raises(InvalidField, match="Invalid field: name"):
        validate_fields(["id", "name"], schema)


@pytest.mark.anyio
@pytest.mark.parametrize("fields", [["id", "status"], ("id", "status"), "id,status"])
async def test_in_process_fields_come_as_a_sequence_or_as_one_text(fields: Any) -> None:
    board = memory_board()
    one = await board.call("get_episode", EPISODE, fields)
    [other] = await board.call_many([Call("get_episode", EPISODE, fields)])
    assert other.result is not None
    assert list(one.structured["episode"]) == list(other.result.structured["episode"])
    assert list(one.structured["episode"]) == ["id", "status"]


def test_the_fields_of_a_tool_are_known_without_a_call() -> None:
    tool = memory_board().describe("get_episode")[0]
    assert {"episode.id", "episode.steps[].tool", "episode.reflection"} <= set(tool.output_fields)


def _episode(answer: Answer) -> dict[str, Any]:
    return answer.ok["structuredContent"]["episode"]


def _tokens(answer: Answer) -> int:
    return count_tokens(answer.ok["structuredContent"])


def _saved(told: Transcript, key: str) -> float:
    return 1 - _tokens(told[key]) / _tokens(told["whole"])
