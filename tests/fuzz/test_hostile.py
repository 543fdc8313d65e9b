"""A short run of what `python -m tests.fuzz` does at length."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest
from tests.fuzz.hostile import Attacker, attack
from tests.fuzz.processes import attack_http, attack_stdio, config, tracebacks
from tests.replicas.world import MODERN_META
from tests.robustness.world import running

pytestmark = pytest.mark.anyio


async def test_hostile_requests_neither_crash_the_server_nor_leak_between_principals() -> None:
    findings = await attack(1_500, seed=7)
    assert findings.crashes == []
    assert findings.leaks == []
    assert findings.told >= 5, "the attack must reach the tools"
    assert sum(findings.statuses.values()) > 1_400
    assert set(findings.statuses) > {200, 400, 401, 404}


async def test_memory_does_not_grow_with_the_number_of_requests() -> None:
    await attack(100, seed=1)
    tracemalloc.start()
    try:
        await attack(200, seed=2)
        few = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        await attack(600, seed=3)
        many = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert many < few * 2 + 10_000_000


def test_the_same_seed_makes_the_same_requests() -> None:
    one, other = Attacker(3), Attacker(3)
    assert [one.request() for _ in range(50)] == [other.request() for _ in range(50)]


def test_hostile_requests_to_a_real_gateway_over_http(tmp_path: Path) -> None:
    report = attack_http(tmp_path, 600, seed=11)
    assert report.is_clean, report.summary()
    assert max(report.findings.statuses) < 500
    assert report.findings.told >= 1, "the attack must reach the tools"


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_hostile_messages_to_a_real_gateway_on_stdio(era: str, tmp_path: Path) -> None:
    report = attack_stdio(tmp_path, 800, seed=12, era=era)
    assert report.is_clean, report.summary()
    assert report.errors[0] > 20, "some are answered with a result"


def test_an_unknown_mode_is_misuse_for_every_method(tmp_path: Path) -> None:
    with running(tmp_path, config(tmp_path, keys=False)) as gateway, gateway.client() as client:
        for method in ("tools/list", "resources/list", "prompts/get", "resources/read"):
            headers = {
                "Accept": "application/json, text/event-stream",
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": method,
                "Mcp-Name": "x",
            }
            params = {"name": "x", "uri": "x", "_meta": MODERN_META}
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            answer = client.post("/mcp?mode=%00", json=body, headers=headers)
            assert answer.status_code < 500
            assert "Internal error" not in answer.text
        assert tracebacks(gateway.log) == []
