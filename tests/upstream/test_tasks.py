"""The addresses of tasks, and the way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.upstream import tasks
from pegboard.upstream.addresses import Location


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_task_address_leads_back_to_its_server_and_id(server: str, task_id: str) -> None:
    assert tasks.parse_task_address(tasks.build_task_address(server, task_id)) == Location(
        server, task_id
    )


@pytest.mark.parametrize("address", [None, 5, "", "plain", ":x", "x:"])
def test_a_text_that_is_not_a_task_address_is_not_parsed(address: object) -> None:
    assert tasks.parse_task_address(address) is None


def test_task_ids_are_addressed_wherever_a_result_has_them() -> None:
    related = {tasks.RELATED_TASK: {"taskId": "1"}}
    result = {"taskId": "1", "task": {"taskId": "1"}, "tasks": [{"taskId": "1"}], "_meta": related}
    named = {"taskId": "s:1"}
    assert tasks.add_task_addresses("s", result) == {
        "taskId": "s:1",
        "task": named,
        "tasks": [named],
        "_meta": {tasks.RELATED_TASK: named},
    }
    assert tasks.add_task_addresses("s", {"content": []}) == {"content": []}
