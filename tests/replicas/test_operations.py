"""Running gateways as operators see them: figures, traces, the audit log, reloads, a store away."""

from __future__ import annotations

import hashlib
import json
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.real_redis import RedisServer
from tests.replicas.world import Replica, World, handle_in, message

from pegboard import Pegboard

WAIT = 20.0


def hashed(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def keys(**principals: str) -> str:
    entries = [
        f'[[auth.keys]]\nprincipal = "{who}"\nsha256 = "{hashed(key)}"\n'
        for who, key in principals.items()
    ]
    return '[auth]\nkind = "keys"\n' + "".join(entries)


GOVERNED = """
[http]
operators = ["ann"]
[observe]
metrics = "protected"
audit = "audit.jsonl"
[permissions]
default = "deny"
[[permissions.rules]]
tools = ["quick", "wait", "report"]
[[permissions.rules]]
principals = ["ann"]
"""


@pytest.fixture
def world(redis_server: RedisServer, tmp_path: Path) -> Iterator[World]:
    redis_server.command("-n", "5", "FLUSHDB")
    made = World(tmp_path, f"redis://127.0.0.1:{redis_server.port}/5")
    yield made
    made.stop()


def governed(world: World, settings: str) -> None:
    world.settings = settings
    world.__post_init__()


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline


def as_(replica: Replica, key: str) -> Replica:
    replica.client.headers["Authorization"] = f"Bearer {key}"
    return replica


def figures(replica: Replica) -> dict[tuple[str, ...], float]:
    answer = replica.client.get(f"{replica.url}/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_the_audit_log_tells_of_unknown_and_hidden_names_and_the_caller_of_no_difference(
    world: World,
) -> None:
    governed(world, GOVERNED + keys(ann="key-a", bob="key-b"))
    replica = as_(world.start(), "key-b")

    def tried(name: str) -> list[str]:
        call = {"name": name, "arguments": {}}
        ways = [
            call,
            {"name": "call_tool", "arguments": call},
            {"name": "call_tools", "arguments": {"calls": [call]}},
            {"name": "tools_dispatch", "arguments": {"tool": name, "params": {}}},
            {"name": "invoke_tool", "arguments": {"toolName": name}},
        ]
        answers = [replica.post("tools/call", **params).text for params in ways]
        return [_without_times(answer).replace(name, "NAME") for answer in answers]

    assert tried("work_broken") == tried("work_brokex")
    assert replica.text("work_quick") == "quick"
    lines = [json.loads(line) for line in (world.folder / "audit.jsonl").read_text().splitlines()]
    missing = [line for line in lines if line.get("error") == "unknown_tool"]
    for name in ("work_broken", "work_brokex"):
        ways = [line.get("via") for line in missing if line["tool"] == name]
        assert ways[:3] == [None, "call_tool", "call_tools"]
        assert "invoke_tool" in ways
    assert {line["principal"] for line in lines} == {"bob"}
    assert lines[-1]["tool"] == "work.quick"
    assert lines[-1]["outcome"] == "ok"
    counted = figures(as_(replica, "key-a"))
    assert counted[("pegboard_calls_total", "", "proxy", "refused", "unknown_tool")] >= 6


def _without_times(text: str) -> str:
    """What is measured differs from call to call."""
    return "".join(part.lstrip("0123456789.") for part in text.split('duration_ms\\":'))


def test_metrics_are_for_those_who_may_and_compare_the_arms_of_a_rollout(world: World) -> None:
    governed(world, GOVERNED + keys(ann="key-a"))
    replica = world.start()
    assert httpx2.get(f"{replica.url}/metrics").status_code == 401
    as_(replica, "key-a")
    world.command("rollout", "start", "index", "--percent", "100")
    eventually(lambda: "list_available_tools" in str(replica.ask("tools/list")))
    assert replica.text("work_quick") == "quick"
    replica.call("work_wait", seconds="never")
    seen = figures(replica)
    arm = ("candidate", "index")
    assert seen[("pegboard_rollout_calls_total", *arm)] == 2
    assert seen[("pegboard_rollout_call_seconds_count", *arm)] == 2
    assert seen[("pegboard_rollout_sessions_total", *arm)] >= 1
    assert seen[("pegboard_rollout_tokens_total", *arm)] > 100
    assert seen[("pegboard_tokens_total", "index", "tools/list")] > 50
    assert seen[("pegboard_calls_total", "", "index", "ok", "work")] == 1
    eventually(lambda: _arms(world)["candidate"]["calls"] == 2)
    assert _arms(world)["candidate"]["tokens_per_session"] > 20
    page = replica.client.get(f"{replica.url}/ui/rollout").text
    assert "Tokens per session" in page


def _arms(world: World) -> dict[str, Any]:
    return json.loads(world.command("rollout", "show", "--json").stdout)["arms"]


def test_metrics_of_workers_are_added_up(world: World) -> None:
    governed(world, '[observe]\nmetrics = "open"\n')
    front = world.start(options=["--workers", "2"])
    for _ in range(12):  # a connection each, so that both workers get some
        with httpx2.Client(timeout=30) as front.client:
            assert front.text("work_quick") == "quick"
    front.client = httpx2.Client(timeout=30)
    eventually(lambda: figures(front)[("pegboard_calls_total", "", "ok", "proxy", "work")] == 12)


def test_spans_and_metrics_go_where_the_otel_variables_say(world: World) -> None:
    governed(world, "[observe]\nopentelemetry = true\n")
    replica = world.start(OTEL_TRACES_EXPORTER="console", OTEL_METRICS_EXPORTER="console")
    assert replica.text("work_quick") == "quick"
    replica.process.send_signal(signal.SIGTERM)
    assert replica.process.wait(timeout=WAIT) == 0
    printed = replica.log.with_suffix(".out").read_text()
    assert '"execute_tool work.quick"' in printed
    for name in ("pegboard.calls", "pegboard.call.duration", "pegboard.tokens"):
        assert f'"name": "{name}"' in printed
    assert '"service.name": "pegboard"' in printed


def test_a_reload_takes_new_keys_and_says_what_needs_a_restart(world: World) -> None:
    governed(world, GOVERNED + keys(ann="key-a"))
    replica = world.start()

    def is_let_in(key: str) -> bool:
        return as_(replica, key).post("tools/list").status_code == 200

    assert is_let_in("key-a")
    assert not is_let_in("key-b")
    changed = GOVERNED.replace("protected", "open").replace("audit.jsonl", "other.jsonl")
    world.store = world.store.replace("/5", "/4")
    governed(world, changed + keys(bob="key-b"))
    text = Path(world.config).read_text()
    text = text.replace('kind = "keys"\n', 'kind = "keys"\nrequired_scopes = ["tools"]\n')
    Path(world.config).write_text(text)
    replica.process.send_signal(signal.SIGHUP)
    eventually(lambda: "need a restart" in replica.log.read_text())
    said = replica.log.read_text().split("need a restart")[1].splitlines()[0]
    for key in ("auth.required_scopes", "store.url", "observe.metrics", "observe.audit"):
        assert key in said
    assert "auth.keys" not in said
    assert is_let_in("key-b")
    assert not is_let_in("key-a"), "a key that was taken out opens nothing"
    Path(world.config).write_text(text.replace(hashed("key-b"), "no hash"))
    replica.process.send_signal(signal.SIGHUP)
    eventually(lambda: "was not applied" in replica.log.read_text())
    assert is_let_in("key-b")


def test_decisions_are_refused_while_the_store_is_away_and_a_lock_in_it_holds_all_back(
    own_redis: RedisServer, tmp_path: Path
) -> None:
    url = f"redis://127.0.0.1:{own_redis.port}/0"
    world = World(tmp_path, url, '[trust]\nlock = "store"\n')
    try:
        first = world.start()
        assert first.text("work_quick") == "quick"
        assert [t.enabled for t in Pegboard.from_config(world.config).tools()]
        revoked = world.command("lock", "revoke", "work.quick")
        assert revoked.returncode == 0, revoked.stderr
        eventually(lambda: "work_quick" not in first.listed())
        board = Pegboard.from_config(world.config, upstreams=_kept(world))
        assert "work_quick" not in {tool.name for tool in board.tools()}
        own_redis.stop()
        for words in (
            ("rollout", "start", "index", "--percent", "50"),
            ("rollout", "stop"),
            ("lock", "approve"),
        ):
            assert world.command(*words).returncode == 1
        assert first.text("work_wait", seconds=0) == "waited", "what was let through goes on"
        assert "work_quick" not in first.listed()
        blind = world.start(until_ready=False)
        eventually(lambda: _answers(blind))
        assert blind.listed() == set()
        assert "decisions about tools cannot be read" in blind.text("work_wait", seconds=0)
        own_redis.start()
        eventually(lambda: "work_wait" in blind.listed())
        assert handle_in(blind.text("work_report", rows=900))
    finally:
        world.stop()


def _answers(replica: Replica) -> bool:
    try:
        return replica.client.get(f"{replica.url}/ready").status_code == 503
    except httpx2.ConnectError:
        return False


def _kept(world: World) -> Any:
    from pegboard.config.settings import UpstreamSettings

    return UpstreamSettings(folder=str(world.folder / "kept"))


def test_old_clients_without_sessions_are_answered_by_any_replica(world: World) -> None:
    governed(world, '[http]\nlegacy = "stateless"\n')
    replicas = [world.start(), world.start()]
    hello = {
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {},
                   "clientInfo": {"name": "old", "version": "1"}},
    }  # fmt: skip
    assert "mcp-session-id" not in replicas[0].legacy(hello).headers
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "work_quick", "arguments": {}}}  # fmt: skip
    for replica in [*replicas, *replicas]:
        assert message(replica.legacy(call))["result"]["content"][0]["text"] == "quick"
