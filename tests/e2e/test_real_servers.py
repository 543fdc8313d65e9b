"""Servers that others wrote, behind a gateway: from npm, and from PyPI in an environment apart.

`npm ci` in `tests/typescript` brings the former. The latter are looked for where
`PEGBOARD_PYTHON_SERVERS` says, else on the path: their own SDK is of another version than ours.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from tests.conftest import missing_part
from tests.gateway.support import ROOT, called, said, searched, served

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def from_npm(name: str, *args: str) -> dict[str, Any]:
    program = ROOT / "tests" / "typescript" / "node_modules" / ".bin" / name
    if shutil.which("node") is None or not program.exists():
        missing_part(f"{name} is not installed (npm ci in tests/typescript)")
    return {"command": str(program), "args": list(args)}


def from_pypi(name: str, *args: str) -> dict[str, Any]:
    program = shutil.which(name, path=os.environ.get("PEGBOARD_PYTHON_SERVERS")) or shutil.which(
        name
    )
    if program is None:
        missing_part(f"{name} is not installed (pip install 'mcp<2' {name}, in a venv apart)")
    return {"command": program, "args": list(args)}


@ERAS
async def test_everything_answers_tools_prompts_resources(era: str, tmp_path: Path) -> None:
    servers = {"every": from_npm("mcp-server-everything")}
    async with served(tmp_path, servers, "--mode", "proxy", era=era) as client:
        assert "every_echo" in await searched(client, "echo back a message")
        assert await called(client, "every_echo", {"message": "hi"}) == "Echo: hi"
        prompts = (await client.list_prompts()).prompts
        assert prompts
        assert all(prompt.name.startswith("every.") for prompt in prompts)
        resources = (await client.list_resources()).resources
        assert (await client.read_resource(str(resources[0].uri))).contents


@ERAS
async def test_files_are_written_read_and_refused_outside(era: str, tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    servers = {"fs": from_npm("mcp-server-filesystem", str(inside))}
    async with served(tmp_path, servers, "--mode", "eager", era=era) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert "fs_write_file" in names
        path = str(inside / "note.txt")
        await client.call_tool("fs_write_file", {"path": path, "content": "hello"})
        read = await client.call_tool("fs_read_text_file", {"path": path})
        assert "hello" in said(read)
        refused = await client.call_tool("fs_read_text_file", {"path": "/etc/passwd"})
        assert refused.is_error


@ERAS
async def test_a_memory_is_kept_between_calls_of_one_client(era: str, tmp_path: Path) -> None:
    entry = from_npm("mcp-server-memory")
    entry["env"] = {"MEMORY_FILE_PATH": str(tmp_path / "memory.json")}
    async with served(tmp_path, {"mem": entry}, "--mode", "proxy", era=era) as client:
        entity = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}
        created = await call_any(client, "mem_create_entities", {"entities": [entity]})
        assert "Ada" in created
        assert "wrote programs" in await call_any(client, "mem_search_nodes", {"query": "Ada"})


@ERAS
async def test_time_git_and_sqlite_stand_side_by_side(era: str, tmp_path: Path) -> None:
    repository = tmp_path / "repo"
    await anyio.run_process(["git", "init", "-q", str(repository)])
    (repository / "new.txt").write_text("new")
    servers = {
        "time": from_pypi("mcp-server-time", "--local-timezone", "UTC"),
        "git": from_pypi("mcp-server-git", "--repository", str(repository)),
        "db": from_pypi("mcp-server-sqlite", "--db-path", str(tmp_path / "data.db")),
    }
    async with served(tmp_path, servers, "--mode", "proxy", era=era) as client:
        while "Still starting" in await searched(client, "anything"):  # noqa: ASYNC110 - it tells by itself
            await anyio.sleep(0.2)
        now = await call_any(client, "time_get_current_time", {"timezone": "Europe/Paris"})
        assert "Europe/Paris" in now
        status = await call_any(client, "git_git_status", {"repo_path": str(repository)})
        assert "new.txt" in status
        create = {"query": "CREATE TABLE t (a INTEGER)"}
        await call_any(client, "db_create_table", create)
        assert "'t'" in await call_any(client, "db_list_tables", {})
        found = await searched(client, "show the commit log")
        assert "git_log(" in found
        assert "git_git_log" not in found


async def call_any(client: Client, name: str, arguments: dict[str, Any]) -> str:
    """Call through the call tool of the tool's own risk: the last one takes all."""
    listed = {tool.name for tool in (await client.list_tools()).tools}
    tool = "call_destructive_tool" if "call_destructive_tool" in listed else "call_tool"
    return said(await client.call_tool(tool, {"name": name, "arguments": arguments}))
