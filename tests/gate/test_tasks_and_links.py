"""Tasks belong to who began them, and a link leads nobody away from another server's resources."""

from __future__ import annotations

import pytest
from tests.gate.world import Person, World


def began(person: Person) -> str:
    return person.call("jobs_start")["task"]["taskId"]


@pytest.mark.parametrize("verb", ["get", "result", "cancel", "update"])
def test_a_task_is_only_for_who_began_it(world: World, verb: str) -> None:
    task, server_id = (mine := began(world.person("ann"))), mine.partition(":")[2]
    bob, method = world.person("bob"), f"tasks/{verb}"
    assert bob.call("jobs_look")["content"], "a tool of that server"
    refused = bob.error(method, taskId=task)
    assert refused == bob.error(method, taskId="jobs:999").replace("jobs:999", task)
    assert not world.was_asked("jobs", f"{method} {server_id}")
    followed = world.person("ann").ask(method, taskId=task)
    assert followed["result"]["taskId"] == task
    assert world.was_asked("jobs", f"{method} {server_id}")


def test_who_began_a_task_can_follow_it_with_one_tool_only(world: World) -> None:
    task = began(world.person("bob"))
    assert world.person("bob").ask("tasks/get", taskId=task)["result"]["status"] == "tasks/get"
    assert "No server has the task" in world.person("carol").error("tasks/get", taskId=task)


def test_a_task_ends_for_its_owner_with_the_tool(world: World) -> None:
    task = began(world.person("bob"))
    before = world.settings
    world.reload(before.replace('"jobs.start"', '"jobs.nothing"'))
    try:
        assert "No server has the task" in world.person("bob").error("tasks/get", taskId=task)
    finally:
        world.reload(before)
    assert "result" in world.person("bob").ask("tasks/get", taskId=task)


@pytest.mark.parametrize("uri", ["vault://plans", "vault://papers/7"])
def test_a_link_does_not_redirect_what_another_server_declares(world: World, uri: str) -> None:
    ann = world.person("ann")
    ann.call("forger_link", uri=uri)
    contents = ann.ask("resources/read", uri=uri)["result"]["contents"]
    assert contents[0]["text"] == f"vault has {uri}"


@pytest.mark.parametrize("uri", ["vault://plans", "vault://papers/7", "pegboard://vault/x://y"])
def test_a_link_leads_to_the_server_that_gave_it_whatever_others_declare(
    world: World, uri: str
) -> None:
    """Otherwise a server with a wide template would get the reads of what others link to."""
    ann = world.person("ann")
    [link] = ann.call("forger_link", uri=uri)["content"]
    assert link["uri"] == f"pegboard://forger/{uri}"
    contents = ann.ask("resources/read", uri=link["uri"])["result"]["contents"]
    assert contents[0]["text"] == f"forger has {uri}"
    [own] = ann.call("forger_link", uri="forger://own")["content"]
    assert own["uri"] == "forger://own"


def test_a_link_counts_only_for_who_was_given_it(world: World) -> None:
    ann, carol, uri = world.person("ann"), world.person("carol"), "loose://leaf"
    assert "No server has the resource" in carol.error("resources/read", uri=uri)
    carol.call("forger_link", uri=uri)
    assert "No server has the resource" in ann.error("resources/read", uri=uri)
    contents = carol.ask("resources/read", uri=uri)["result"]["contents"]
    assert contents[0]["text"] == f"forger has {uri}"
