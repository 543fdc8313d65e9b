"""The example servers through every mode, in both eras: found, described, called, shortened."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import Any

import pytest
from tests.acceptance.support import BOARDS, LIST, MODES, ask, call, play
from tests.conformance.clients import Scenario, Step, Transcript

from examples.memory import RICH_EPISODE
from pegboard.modes.mode import META_TOOL_NAMES
from pegboard.tokens import count_tokens


@dataclass(frozen=True)
class Task:
    """Something that a person wants from an example server."""

    server: str
    words: str
    tool: str
    category: str
    arguments: dict[str, Any]
    fields: list[str]


TASKS = {
    "memory": Task(
        "memory",
        "what did we do in this episode",
        "get_episode",
        "episodes",
        {"episode_id": RICH_EPISODE},
        ["id", "task_description", "outcome_type"],
    ),
    "tracker": Task(
        "tracker",
        "which issues are open",
        "list_issues",
        "issues",
        {"project": "WEB"},
        ["key", "title"],
    ),
}
CASES = list(itertools.product(TASKS, MODES, ("legacy", "modern")))


def _through(mode: str, task: Task, **more: Any) -> Step:
    """The call of the task's tool as the mode has it."""
    match mode:
        case "hierarchy":
            return call("tools_dispatch", tool=task.tool, params=task.arguments, **more)
        case "proxy":
            return call("call_tool", name=task.tool, arguments=task.arguments, **more)
        case "dynamic":
            return call("call_tool", name=task.tool, arguments=task.arguments, **more)
        case _:
            return call(task.tool, **task.arguments, **more)


def _look_up(mode: str, task: Task) -> Step:
    match mode:
        case "index":
            return call("get_tool_description", tool_name=task.tool)
        case "hierarchy":
            return call("tools_get_schema", category=task.category, tool=task.tool)
        case "proxy" | "dynamic":
            return call("search_tools", query=task.words, limit=10)
        case _:
            return ask("tools/describe", names=[task.tool])


def _steps(mode: str, task: Task) -> Scenario:
    return {
        "list": LIST,
        "look up": _look_up(mode, task),
        "call": _through(mode, task),
        "raw": call(task.tool, **task.arguments),
        "fields": _through(mode, task, include_fields=task.fields),
        "wrong field": _through(mode, task, include_fields=["nonsense"]),
        "unknown": call(f"{task.tool}x"),
    }


@pytest.fixture(scope="module", params=CASES, ids=lambda c: "-".join(c))
def played(request: pytest.FixtureRequest) -> tuple[Task, str, Transcript]:
    server, mode, era = request.param
    task = TASKS[server]
    return task, mode, play(BOARDS[server](), era, _steps(mode, task), mode=mode)


def test_the_tool_is_found(played: tuple[Task, str, Transcript]) -> None:
    task, _, told = played
    assert task.tool in json.dumps(told["look up"].ok)


def test_the_call_gives_the_data_whatever_the_mode(played: tuple[Task, str, Transcript]) -> None:
    task, _, told = played
    data = told["raw"].ok["structuredContent"]
    text = told["call"].text
    first = data["episode"]["id"] if task.server == "memory" else data["issues"][0]["key"]
    assert first in text


def test_chosen_fields_save_tokens_whatever_the_mode(played: tuple[Task, str, Transcript]) -> None:
    task, _, told = played
    whole, kept = count_tokens(told["raw"].text), count_tokens(told["fields"].text)
    assert kept < (0.1 if task.server == "memory" else 0.6) * whole
    assert told["wrong field"].mendable["kind"] == "invalid_field"


def test_an_unknown_tool_is_answered_with_the_nearest(
    played: tuple[Task, str, Transcript],
) -> None:
    task, _, told = played
    assert told["unknown"].misuse["data"]["nearest"][0] == task.tool


def test_the_list_is_as_short_as_its_mode_promises(played: tuple[Task, str, Transcript]) -> None:
    task, mode, told = played
    tools = [name for name in told["list"].names if name not in META_TOOL_NAMES]
    if mode in ("eager", "stub"):
        assert len(tools) == len(BOARDS[task.server]().tools())
    else:
        assert len(tools) <= 2  # the pins
