"""Configured secrets: a server that prints them shows them to nobody, and files are private."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from pathlib import Path

import mcp_types as t
import pytest
from mcp.shared.exceptions import MCPError
from tests.gateway.support import entry, said, searched, served, served_config

from pegboard.upstream.failures import MAX_DATA_LENGTH, MAX_MESSAGE_LENGTH

pytestmark = pytest.mark.anyio

SECRET = "hunter2-and-3/4 more"
TOML = """
mode = "eager"
[observe]
log = "json"
audit = "{audit}"
[servers.h]
command = {command}
args = {args}
env = {{ SERVICE_PASSWORD = "{secret}" }}
"""


def hostile_server() -> dict[str, object]:
    return {"h": entry("hostile", env={"SERVICE_PASSWORD": SECRET})}


async def test_an_error_of_a_server_is_bounded_clean_and_without_secrets(tmp_path: Path) -> None:
    async with served(tmp_path, hostile_server(), "--mode", "eager") as client:
        await client.list_tools()
        text = await _failure(client.call_tool("h_fail", {}))
    assert SECRET not in text
    assert "cannot log in with [redacted]x" in text
    assert len(text) < 3 * MAX_MESSAGE_LENGTH + MAX_DATA_LENGTH


async def test_the_last_words_of_a_server_hold_no_secret(tmp_path: Path) -> None:
    async with served(tmp_path, hostile_server(), "--mode", "proxy") as client:
        await searched(client, "dies")
        text = await _failure(client.call_tool("call_write_tool", {"name": "h_die"}))
        again = await searched(client, "prints a secret and dies")
    assert "connecting with [redacted] failed" in text
    assert SECRET not in text + again + (tmp_path / "stderr.txt").read_text()
    log = (tmp_path / "home" / "logs" / "h.log").read_text()
    assert "starting with [redacted]" in log
    assert SECRET not in log


async def test_files_of_a_gateway_are_their_owner_s_alone_also_older_ones(tmp_path: Path) -> None:
    logs = tmp_path / "home" / "logs"
    logs.mkdir(parents=True, mode=0o755)
    (logs / "h.log").write_text("old\n")
    (logs / "h.log").chmod(0o644)
    audit = tmp_path / "audit" / "calls.jsonl"
    config = tmp_path / "pegboard.toml"
    server = entry("hostile")
    config.write_text(
        TOML.format(
            audit=audit,
            command=json.dumps(server["command"]),
            args=json.dumps(server["args"]),
            secret=SECRET,
        )
    )
    async with served_config(config, tmp_path) as client:
        await client.list_tools()
        await client.call_tool("h_echo", {"le\\u{200b}vel": "low"})
    home = list((tmp_path / "home").rglob("*"))
    open_to_others = [p for p in (*home, audit, audit.parent) if p.stat().st_mode & 0o077]
    assert {p.name for p in home} >= {"logs", "h.log", "catalogs", "journals"}
    assert open_to_others == []
    assert SECRET not in (tmp_path / "stderr.txt").read_text()


async def _failure(call: Awaitable[t.CallToolResult]) -> str:
    """All that a client is told of a call that failed."""
    try:
        result = await call
    except MCPError as exc:
        return exc.message + json.dumps(exc.data)
    assert result.is_error
    return said(result) + json.dumps(result.structured_content)
