"""Who did what is on record: every request of the protocol, operators' decisions, sign-ins."""

from __future__ import annotations

import os
import pwd
from typing import Any

import pytest
from tests.gate.world import World, eventually

REQUESTS = [
    ("tools/list", {}, None),
    ("resources/list", {}, None),
    ("resources/read", {"uri": "vault://plans"}, "vault://plans"),
    ("prompts/list", {}, None),
    ("prompts/get", {"name": "vault.brief"}, "vault.brief"),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "vault.brief"},
         "argument": {"name": "a", "value": "b"}},
        "vault.brief",
    ),
]  # fmt: skip


def lines(world: World, principal: str, operation: str) -> list[dict[str, Any]]:
    return [
        line for line in world.audit()
        if line.get("principal") == principal and line["operation"] == operation
    ]  # fmt: skip


@pytest.mark.parametrize(("method", "params", "target"), REQUESTS)
def test_every_request_is_a_line_with_who_what_and_how_it_ended(
    world: World, method: str, params: dict[str, Any], target: str | None
) -> None:
    assert "result" in world.person("eve").ask(method, **params)
    line = lines(world, "eve", method)[-1]
    assert line["outcome"] == "ok"
    assert line.get("target") == target


def test_refused_reads_tasks_searches_and_streams_are_on_record(world: World) -> None:
    eve, bob = world.person("eve"), world.person("bob")
    bob.error("resources/read", uri="vault://plans")
    assert lines(world, "bob", "resources/read")[-1]["outcome"] == "error"
    task = eve.call("jobs_start")["task"]["taskId"]
    eve.ask("tasks/cancel", taskId=task)
    assert lines(world, "eve", "tasks/cancel")[-1]["target"] == task
    bob.error("tasks/cancel", taskId=task)
    assert lines(world, "bob", "tasks/cancel")[-1]["outcome"] == "error"
    eve.text("search_tools", query="a secret wish")
    assert lines(world, "eve", "search")[-1]["arguments"].startswith("sha256:")
    with eve.listening("vault://papers/5"):
        assert "vault://papers/5" in lines(world, "eve", "subscriptions/listen")[-1]["target"]
    assert "secret wish" not in (world.folder / "audit.jsonl").read_text()


def test_what_operators_decide_on_the_dashboard_is_on_record(world: World) -> None:
    ann = world.person("ann")
    ann.switch("wiki.edit", on=False)
    ann.switch("wiki.edit", on=True)
    off, on = lines(world, "ann", "tool.disable")[-1], lines(world, "ann", "tool.enable")[-1]
    for line in (off, on):
        assert (line["source"], line["outcome"]) == ("dashboard", "ok")
        assert line["details"]["id"] == "wiki.edit"
        assert line["address"] == "127.0.0.1"
        assert "csrf_token" not in line["details"]
    ann.post("trust/revoke", "trust", server="wiki", tool="edit")
    assert lines(world, "ann", "trust.revoke")[-1]["details"] == {"server": "wiki", "tool": "edit"}
    ann.post("rollout/start", "rollout", mode="index", percent="0", by="principal")
    ann.post("rollout/stop", "rollout")
    assert lines(world, "ann", "rollout.start")[-1]["details"]["mode"] == "index"
    assert lines(world, "ann", "rollout.stop")[-1]["outcome"] == "ok"


def test_who_tries_to_decide_without_the_right_is_on_record(world: World) -> None:
    answer = world.person("bob").client.post("/ui/trust/approve", data={"tool": "edit"})
    assert answer.status_code == 403
    line = lines(world, "bob", "trust.approve")[-1]
    assert (line["outcome"], line["error"]) == ("error", "not_permitted")


def test_decisions_on_the_command_line_name_the_user_of_the_system(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    monkeypatch.setenv("USER", "somebody-else")
    user = pwd.getpwuid(os.getuid()).pw_name
    assert world.run("lock", "revoke", "wiki.edit").returncode == 0
    line = lines(world, user, "lock.revoke")[-1]
    assert (line["source"], line["targets"], line["outcome"]) == ("cli", ["wiki.edit"], "ok")
    assert world.run("lock", "approve", "wiki.edit").returncode == 1, "nobody has looked at it"
    line = lines(world, user, "lock.approve")[-1]
    assert (line["details"]["refused"], line["outcome"]) == (["wiki.edit"], "error")
    assert "wiki.edit" in world.run("lock", "diff").stdout
    assert world.run("lock", "approve", "wiki.edit").returncode == 0
    assert lines(world, user, "lock.approve")[-1]["targets"] == ["wiki.edit"]
    eventually(lambda: "Disable" in world.person("ann").get("/ui/tool?id=wiki.edit").text)
    assert world.run("rollout", "stop").returncode == 3, "no shared store"
    line = lines(world, user, "rollout.stop")[-1]
    assert (line["outcome"], line["error"]) == ("error", "configuration")


def test_failed_sign_ins_are_on_record_without_what_was_tried(world: World) -> None:
    stranger = world.stranger()
    bearer = {"Authorization": "Bearer wrong-key-1"}

    def failed() -> list[str]:
        found = [line for line in world.audit() if line["operation"] == "sign-in"]
        assert all(line["address"] == "127.0.0.1" for line in found)
        return [line["target"] for line in found]

    before = failed()
    assert stranger.client.post("/mcp", json={}, headers=bearer).status_code == 401
    assert stranger.client.post("/ui/enter", data={"token": "wrong-key-2"}).status_code == 401
    assert stranger.client.get("/ui/calls", headers=bearer).status_code == 401
    tried = {"/mcp", "/ui/enter", "/ui/calls"}
    eventually(lambda: tried <= set(failed()[len(before) :]))
    assert stranger.get("/").status_code == 401
    assert "/" not in failed()[len(before) :], "who brings nothing has not tried"
    assert "wrong-key" not in (world.folder / "audit.jsonl").read_text()


def test_a_flood_of_failed_sign_ins_does_not_fill_the_disk(world: World) -> None:
    stranger, before = world.stranger(), len(world.audit())
    for number in range(200):
        stranger.client.post("/ui/enter", data={"token": f"guess {number}"})
    eventually(lambda: stranger.client.post("/ui/enter", data={"token": "x"}) and any(
        line.get("left_out", 0) > 0 for line in world.audit()[before:]
    ))  # fmt: skip
    assert len(world.audit()) - before < 150


def test_reads_prompts_and_tasks_count_as_calls(world: World) -> None:
    hasty = world.person("hasty")
    assert "result" in hasty.ask("resources/read", uri="vault://plans")
    assert "result" in hasty.ask("prompts/get", name="vault.brief")
    assert hasty.call("jobs_look")["content"]
    for method, params in [
        ("resources/read", {"uri": "vault://plans"}),
        ("prompts/get", {"name": "vault.brief"}),
        ("tasks/get", {"taskId": "jobs:1"}),
    ]:
        assert "Too many calls" in hasty.error(method, **params)
        assert lines(world, "hasty", method)[-1]["error"] == "busy"
    assert "result" in hasty.ask("resources/list"), "a list asks no server"


def test_requests_of_every_kind_are_limited(world: World) -> None:
    talkative = world.person("talkative")
    for method in ("tools/list", "prompts/list", "resources/list"):
        assert "result" in talkative.ask(method)
    assert not talkative.call("search_tools", query="look").get("isError")
    assert "Too many requests" in talkative.error("tools/list")
    assert "Too many requests" in talkative.text("search_tools", query="look")
    listening = {"notifications": {"toolsListChanged": True}}
    assert "Too many requests" in talkative.error("subscriptions/listen", **listening)
