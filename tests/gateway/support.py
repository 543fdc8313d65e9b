"""Whole gateways for tests: real servers behind, real clients in front, a folder of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as t
from mcp import Client, StdioServerParameters
from mcp.client._memory import InMemoryTransport
from tests.upstream.servers.everything import Everything
from tests.upstream.support import in_memory, memory

from pegboard.config.loader import Configuration
from pegboard.config.settings import Settings
from pegboard.core.json import JsonObject
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.mcp_server import build_gateway_server
from pegboard.upstream.spec import UpstreamSpec

ROOT = Path(__file__).parents[2]
SERVERS = ROOT / "tests" / "upstream" / "servers"
SDK_MODES = {"legacy": "legacy", "modern": "auto"}


def entry(script: str, *args: str, **more: Any) -> JsonObject:
    """A server of ours as a configuration file has it."""
    command = {"command": sys.executable, "args": [str(SERVERS / f"{script}.py"), *args]}
    return {**command, **more}


def polite(**more: Any) -> JsonObject:
    return entry("polite", **more)


def faulty(fault: str, **more: Any) -> JsonObject:
    return entry("misbehaving", fault, **more)


def write(folder: Path, servers: JsonObject | str) -> Path:
    """A client's file with these servers."""
    path = folder / "mcp.json"
    text = servers if isinstance(servers, str) else json.dumps({"mcpServers": servers})
    path.write_text(text, encoding="utf-8")
    return path


def client_of(gateway: Gateway, era: str, **callbacks: Any) -> Client:
    """A client of a gateway in this process."""
    server = build_gateway_server(gateway, environ={})
    return Client(InMemoryTransport(server), mode=SDK_MODES[era], cache=None, **callbacks)


@asynccontextmanager
async def running(
    specs: Iterable[UpstreamSpec], folder: Path, *, settings: Settings | None = None, **more: Any
) -> AsyncGenerator[Gateway]:
    """A gateway in this process whose servers have all been looked at."""
    configuration = Configuration(settings or Settings(), upstreams=tuple(specs))
    with anyio.fail_after(30):
        async with Gateway(configuration, folder=folder, **more) as gateway:
            await gateway.wait_until_listed()
            yield gateway


@asynccontextmanager
async def everything_behind(
    server: str, client_era: str, folder: Path, *, mode: str = "eager", **callbacks: Any
) -> AsyncGenerator[tuple[Everything, Client, Gateway]]:
    """A client of one era, a gateway, and a server of another that does everything."""
    it = Everything()
    wires = memory({"e": (it, server)})
    settings = Settings(mode=mode)  # pyright: ignore[reportArgumentType]
    async with (
        running([in_memory("e")], folder, settings=settings, open_transport=wires) as gateway,
        client_of(gateway, client_era, **callbacks) as client,
    ):
        yield it, client, gateway


def command(config: Path, home: Path, *options: str) -> StdioServerParameters:
    """`pegboard serve` as a client starts it."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "pegboard", "serve", "--config", str(config), *options],
        env={"PYTHONPATH": str(ROOT / "src"), "PEGBOARD_HOME": str(home)},
    )


@asynccontextmanager
async def served(
    folder: Path, servers: JsonObject | str, *options: str, era: str = "legacy"
) -> AsyncGenerator[Client]:
    """A client of `pegboard serve`, a process of its own, with these servers behind it."""
    async with served_config(write(folder, servers), folder, *options, era=era) as client:
        yield client


@asynccontextmanager
async def served_config(
    config: Path, folder: Path, *options: str, era: str = "legacy"
) -> AsyncGenerator[Client]:
    """A client of `pegboard serve` with this configuration.

    What it prints on stderr is in `stderr.txt`.
    """
    from mcp.client.stdio import stdio_client

    parameters = command(config, folder / "home", *options)
    with anyio.fail_after(40), (folder / "stderr.txt").open("w") as stderr:
        transport = stdio_client(parameters, errlog=stderr)
        async with Client(transport, mode=SDK_MODES[era], cache=None) as client:
            yield client


def said(result: t.CallToolResult) -> str:
    """All text of a result."""
    return "\n".join(b.text for b in result.content if isinstance(b, t.TextContent))


async def searched(client: Client, query: str) -> str:
    return said(await client.call_tool("search_tools", {"query": query}))


async def called(client: Client, name: str, arguments: JsonObject | None = None) -> str:
    given = {"name": name, "arguments": arguments or {}}
    return said(await client.call_tool("call_destructive_tool", given))
