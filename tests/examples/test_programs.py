"""The example programs, run as they are."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from examples.flat_to_lazy import build_server, server
from tests.conformance.clients import served
from tests.conftest import missing_part

from examples import code_client
from examples.tracker import build_board
from pegboard.config.loader import load_configuration
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.testing import connect, list_tokens

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.anyio


async def test_the_flat_server_becomes_lazy_and_keeps_its_tools_callable() -> None:
    async with connect(server) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("search_tools", {"query": "convert miles to metres"})
        direct = await client.call_tool("mile_to_metre", {"value": 2})
    assert "search_tools" in names
    assert "mile_to_metre" not in names
    assert "mile_to_metre" in str(found.content)
    assert "2.0 mile in metre" in str(direct.content)
    assert (
        await list_tokens(build_server(), "proxy") < await list_tokens(build_server(), "eager") / 5
    )


@pytest.mark.parametrize("kind", ["modern", "legacy", "by-name"])
async def test_programs_delete_what_the_person_agreed_to(kind: str) -> None:
    asked: list[str] = []

    async def agree(question: str) -> bool:
        asked.append(question)
        return True

    found, counted, copied, deleted = await code_client.main(kind, agree)
    assert "list_issues" in found or "list issues" in found
    assert '"backlog"' in counted
    assert copied
    assert deleted == "[2,3]"
    assert len(asked) == 1
    assert "delete_attachment" in asked[0]


def test_the_client_s_helper_runs_as_a_program() -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "examples.lazy_client"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=env,
        check=True,
        timeout=60,
    )
    assert done.stdout.startswith("found: ")
    assert "definitions were fetched" in done.stdout


def test_the_gateway_s_configuration_is_right() -> None:
    found = load_configuration(ROOT / "examples/gateway.toml", ConfigEnvironment({}, ROOT, ROOT))
    assert not found.problems
    assert [spec.name for spec in found.upstreams] == ["tracker", "memory"]
    assert all(Path(spec.cwd or "").resolve() == ROOT for spec in found.upstreams)


async def test_an_agent_of_pydantic_ai_searches_and_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        from examples.pydantic_ai_client import build_agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
        from pydantic_ai.models.function import FunctionModel
    except ImportError:
        missing_part("pydantic-ai-slim[mcp] is not installed")
    shown: list[set[str]] = []

    def model(messages: Any, info: Any) -> ModelResponse:
        """A model that searches, calls what it knows, and then answers with what it read."""
        shown.append({tool.name for tool in info.function_tools})
        read = [p for m in messages for p in m.parts if isinstance(p, ToolReturnPart)]
        if not read:
            return ModelResponse([ToolCallPart("search_tools", {"queries": ["list projects"]})])
        if len(read) == 1:
            return ModelResponse([ToolCallPart("call_tool", {"name": "list_projects"})])
        return ModelResponse([TextPart(f"{read[0].content} {read[1].content}")])

    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    agent = build_agent(FunctionModel(model))
    async with agent:
        answer = (await agent.run("Which projects are there?")).output
    assert "list_projects" in answer
    assert "WEB" in answer
    assert len(shown[0]) < 12


def test_the_typescript_client_runs_as_a_program() -> None:
    node = shutil.which("node")
    packages = ROOT / "tests" / "typescript" / "node_modules"
    if node is None or not packages.is_dir():
        missing_part("node, or the TypeScript SDK, is not installed")
    # Node looks for packages beside the program, and the tests have them elsewhere.
    program = packages.parent / "lazy_client.mjs"
    program.write_bytes((ROOT / "examples" / "lazy_client.mjs").read_bytes())
    try:
        with served(build_board().asgi()) as url:
            task = "which milestones are running late"
            done = subprocess.run(
                [node, str(program), f"{url}/mcp/proxy", task, "list_projects"],
                capture_output=True,
                text=True,
                timeout=60,
            )
    finally:
        program.unlink()
    assert done.returncode == 0, done.stderr
    assert "milestones" in done.stdout.splitlines()[0]
    assert '"key":"API"' in done.stdout
    assert done.stdout.endswith("1 definition was fetched\n")
