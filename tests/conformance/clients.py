"""Real clients that play one scenario: the Python `mcp` client and the TypeScript SDKs.

A scenario is data, so that every client plays the same one; what comes back is a `Transcript` of
JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any, Literal, TypeAlias

import anyio
import mcp_types as types
import uvicorn
from mcp import Client, MCPError, StdioServerParameters
from mcp.client import Transport
from mcp.server.lowlevel.server import Server
from pydantic import TypeAdapter, ValidationError
from starlette.types import ASGIApp
from tests.conftest import missing_part

ROOT = Path(__file__).parents[2]
TYPESCRIPT = ROOT / "tests" / "typescript"
_PATIENCE = 60.0

Era: TypeAlias = Literal["legacy", "modern"]
Step: TypeAlias = Mapping[str, Any]
Scenario: TypeAlias = Mapping[str, Step]
"""Steps by the key under which their answers are looked up, in the order in which they are made."""

_RAW: TypeAdapter[Any] = TypeAdapter(dict[str, Any])


@dataclass(frozen=True)
class Answer:
    """What one step gave: a result, or the error of the protocol."""

    result: dict[str, Any] | None
    error: dict[str, Any] | None
    notifications: tuple[str, ...]

    @property
    def ok(self) -> dict[str, Any]:
        """The result, which must be one and not an error of a tool."""
        assert self.result is not None, self.error
        assert not self.result.get("isError"), self.result
        return self.result

    @property
    def text(self) -> str:
        """The text of a good result."""
        return "\n".join(block["text"] for block in self.ok["content"])

    @property
    def json(self) -> Any:
        """The value in the text of a good result."""
        return json.loads(self.text)

    @property
    def names(self) -> list[str]:
        """The names of a list of tools."""
        return [tool["name"] for tool in self.ok["tools"]]

    @property
    def mendable(self) -> dict[str, Any]:
        """The error that a model reads: a result with `isError`, its text and its data."""
        assert self.result is not None, self.error
        assert self.result["isError"] is True, self.result
        error = self.result["structuredContent"]["error"]
        assert self.result["content"][0]["text"] == error["message"]
        return error

    @property
    def misuse(self) -> dict[str, Any]:
        """The JSON-RPC error -32602."""
        assert self.error is not None, self.result
        assert self.error["code"] == types.INVALID_PARAMS, self.error
        return self.error


@dataclass(frozen=True)
class Transcript:
    """What a client was told about the server, and its answers by key."""

    info: Mapping[str, Any]
    answers: Mapping[str, Answer]
    asked: Sequence[str] = ()
    """The questions that its user was asked."""

    def __getitem__(self, key: str) -> Answer:
        return self.answers[key]


# Python ------------------------------------------------------------------------------------------

Target: TypeAlias = Server[Any] | StdioServerParameters | Transport | str


def play_python(
    target: Target, era: Era, scenario: Scenario, *, name: str = "conformance"
) -> Transcript:
    """The scenario, played by the `mcp` client."""
    return anyio.run(_play_python, target, era, scenario, name)


async def _play_python(target: Target, era: Era, scenario: Scenario, name: str) -> Transcript:
    seen: list[str] = []

    async def note(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            seen.append(message.method)

    answers: dict[str, Answer] = {}
    mode = "legacy" if era == "legacy" else "auto"
    info = types.Implementation(name=name, version="1.0.0")
    with anyio.fail_after(_PATIENCE):
        async with Client(target, mode=mode, client_info=info, message_handler=note) as client:
            for key, step in scenario.items():
                seen.clear()
                answers[key] = await _answer(client, step, seen)
            told = {
                "protocolVersion": client.protocol_version,
                "capabilities": _dump(client.server_capabilities),
                "serverInfo": _dump(client.server_info) if client.server_info else None,
                "instructions": client.instructions,
            }
    return Transcript(told, answers)


async def _answer(client: Client, step: Step, seen: list[str]) -> Answer:
    try:
        result = await _send(client, step)
    except MCPError as exc:
        error = {"code": exc.error.code, "message": exc.error.message, "data": exc.error.data}
        return Answer(None, error, tuple(seen))
    except (RuntimeError, ValidationError) as exc:  # the client refuses what the server sent
        raise AssertionError(f"{step} -> {exc}") from exc
    return Answer(result, None, tuple(seen))


async def _send(client: Client, step: Step) -> dict[str, Any]:
    meta = step.get("meta")
    match step["do"]:
        case "list":
            return _dump(await client.list_tools(meta=meta))
        case "call":
            return _dump(await client.call_tool(step["name"], step["arguments"], meta=meta))
        case _:
            request = types.Request[dict[str, Any], str](
                method=step["method"], params=step["params"]
            )
            return await client.session.send_request(request, _RAW)


def _dump(model: Any) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


# TypeScript --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Job:
    """One scenario for the TypeScript SDK."""

    server: Mapping[str, Any]
    era: Era
    scenario: Scenario
    name: str = "conformance"
    elicit: str | None = None
    """How the user answers every question; without it the client cannot ask."""


def play_typescript(sdk: Literal["1", "2"], jobs: Sequence[Job]) -> list[Transcript]:
    """The scenarios, played by one process of the TypeScript SDK of that major version."""
    node = shutil.which("node")
    if node is None:
        missing_part("node is not installed")
    if not (TYPESCRIPT / "node_modules").is_dir():
        missing_part("the TypeScript SDKs are not installed (npm ci in tests/typescript)")
    order = {
        "sdk": sdk,
        "jobs": [
            {
                **{"server": j.server, "era": j.era, "name": j.name, "elicit": j.elicit},
                "steps": list(j.scenario.values()),
            }
            for j in jobs
        ],
    }
    done = subprocess.run(
        [node, "play.mjs"],
        cwd=TYPESCRIPT,
        input=json.dumps(order),
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    played = json.loads(done.stdout)
    return [_transcript(told, job) for told, job in zip(played, jobs, strict=True)]


def _transcript(told: Mapping[str, Any], job: Job) -> Transcript:
    assert "failed" not in told, told
    answers: dict[str, Answer] = {}
    for (key, step), given in zip(job.scenario.items(), told["answers"], strict=True):
        assert "thrown" not in given, (step, given)
        notifications = tuple(given["notifications"])
        answers[key] = Answer(given.get("result"), given.get("error"), notifications)
    return Transcript(told["info"], answers, told["asked"])


# Servers -----------------------------------------------------------------------------------------


def office_process(**environ: str) -> dict[str, Any]:
    """How to start the office on stdio."""
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {
        "command": sys.executable,
        "args": ["-m", "tests.boards"],
        "env": {"PYTHONPATH": paths, "PATH": os.environ["PATH"], **environ},
        "cwd": str(ROOT),
    }


@contextmanager
def served(app: ASGIApp, port: int = 0) -> Generator[str]:
    """The address of an application served by uvicorn on a loopback port, a free one by default."""
    server = uvicorn.Server(
        uvicorn.Config(
            app, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=1
        )
    )
    thread = Thread(target=server.run, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{_port(server, thread)}"
    finally:
        server.should_exit = True
        thread.join(timeout=10)


def _port(server: uvicorn.Server, thread: Thread) -> int:
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        thread.join(timeout=0.01)
    return server.servers[0].sockets[0].getsockname()[1]
