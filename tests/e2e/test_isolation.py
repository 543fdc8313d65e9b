"""Who shares a server's process, through `pegboard serve --http` and clients of both eras."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from tests.e2e.test_serving import running_gateway
from tests.gateway.support import SDK_MODES, SERVERS, said
from tests.upstream.test_pool import is_running

pytestmark = pytest.mark.anyio

KEYS = {"ann": "key of ann", "bob": "key of bob"}


def server(name: str, script: str = "ledger", more: str = "", *args: str) -> str:
    """A stateful modern server; `table` is on the SDK."""
    given = json.dumps([str(SERVERS / f"{script}.py"), *args])
    return f'[servers.{name}]\ncommand = "{sys.executable}"\nargs = {given}\n{more}\n'


def keys() -> str:
    entries = [
        f'[[auth.keys]]\nprincipal = "{who}"\nsha256 = "{hashlib.sha256(key.encode()).hexdigest()}"'
        for who, key in KEYS.items()
    ]
    return "\n".join(['[auth]\nkind = "keys"', *entries, ""])


def config(folder: Path, *parts: str) -> Path:
    path = folder / "pegboard.toml"
    path.write_text('mode = "eager"\n' + "\n".join(parts))
    return path


@asynccontextmanager
async def client_of(
    url: str, era: str, who: str | None = None, **headers: str
) -> AsyncGenerator[Client]:
    """A client with the key of somebody, or without one."""
    if who is not None:
        headers["authorization"] = f"Bearer {KEYS[who]}"
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(
            streamable_http_client(f"{url}/mcp", http_client=http), mode=SDK_MODES[era], cache=None
        ) as client,
    ):
        yield client


async def call(client: Client, name: str, **arguments: str) -> str:
    """The text that a tool answers with, once it is listed."""
    while name not in {t.name for t in (await client.list_tools()).tools}:  # noqa: ASYNC110 - polled
        await anyio.sleep(0.1)  # a first start lists servers meanwhile
    return said(await client.call_tool(name, arguments))


async def rows(client: Client, server: str) -> tuple[int, str]:
    """The process that answered, and what it has in memory."""
    pid, _, found = (await call(client, f"{server}_read")).partition(" ")
    return int(pid), found


async def test_two_people_with_their_own_keys_never_share_a_process(tmp_path: Path) -> None:
    """With a server on the SDK, and clients of both eras."""
    everybody = [(who, era) for era in SDK_MODES for who in KEYS]
    async with AsyncExitStack() as stack:
        path = config(tmp_path, keys(), server("t", "table"))
        url, _ = await stack.enter_async_context(running_gateway(tmp_path, path, patience=60))
        clients = [
            await stack.enter_async_context(client_of(url, era, who)) for who, era in everybody
        ]
        async with anyio.create_task_group() as tasks:
            for (who, era), client in zip(everybody, clients, strict=True):
                put = partial(call, client, "t_put", key=who, value=era)
                tasks.start_soon(put)
        found = [await rows(client, "t") for client in clients]
        assert [kept for _, kept in found] == [f"[('{who}', '{era}')]" for who, era in everybody]
        assert len({pid for pid, _ in found}) == 4


async def test_an_operator_decides_who_shares_a_server(tmp_path: Path) -> None:
    servers = [
        server("open", more="stateless = true"),
        server("shared", more='isolation = "shared"'),
        server("own", more='isolation = "principal"'),
    ]
    async with AsyncExitStack() as stack:
        path = config(tmp_path, keys(), *servers)
        url, _ = await stack.enter_async_context(running_gateway(tmp_path, path))
        ann, ann_again, bob = [
            await stack.enter_async_context(client_of(url, era, who))
            for era, who in (("legacy", "ann"), ("modern", "ann"), ("modern", "bob"))
        ]
        for name in ("open", "shared", "own"):
            await call(ann, f"{name}_put", value="a")
            assert await rows(ann_again, name) == await rows(ann, name)
        assert [(await rows(bob, name))[1] for name in ("open", "shared", "own")] == ["a", "a", ""]


async def test_without_a_sign_in_one_process_serves_the_local_user_alone(tmp_path: Path) -> None:
    proxied = {"x-forwarded-for": "203.0.113.7"}
    path = config(tmp_path, server("t"), server("open", more="stateless = true"))
    async with running_gateway(tmp_path, path) as (url, _):
        async with client_of(url, "modern") as one, client_of(url, "modern") as two:
            await call(one, "t_put", value="mine")
            assert await rows(one, "t") == await rows(two, "t")
        async with client_of(url, "modern", forwarded="for=203.0.113.7") as stranger:
            refused = await call(stranger, "t_read")
            assert "does not know who its users are" in refused
            assert 'isolation = "shared"' in refused
            assert (await rows(stranger, "open"))[1] == ""
        async with (
            client_of(url, "legacy", **proxied) as one,
            client_of(url, "legacy", **proxied) as two,
        ):
            await call(one, "t_put", value="a stranger's")
            assert (await rows(one, "t"))[1] == "a stranger's"
            assert (await rows(two, "t"))[1] == ""


async def test_an_open_gateway_names_the_servers_that_it_refuses(tmp_path: Path) -> None:
    open_to_all = "[http]\nunauthenticated = true\n"
    path = config(tmp_path, open_to_all, server("t"), server("open", more="stateless = true"))
    env = {"PEGBOARD_UNAUTHENTICATED": "1"}
    async with running_gateway(tmp_path, path, host="0.0.0.0", env=env) as (url, _):
        async with client_of(url, "modern") as client:
            assert "does not know who its users are" in await call(client, "t_read")
            assert (await rows(client, "open"))[1] == ""
        assert "are refused by: t. Set `auth`" in (tmp_path / "stderr.txt").read_text()


async def test_the_caps_of_processes_are_settings(tmp_path: Path) -> None:
    caps = "[upstreams]\nmax_processes = 3\nmax_processes_per_principal = 2\n"
    path = config(tmp_path, keys(), caps, *(server(name) for name in "abc"))
    async with (
        running_gateway(tmp_path, path) as (url, _),
        client_of(url, "modern", "ann") as ann,
        client_of(url, "modern", "bob") as bob,
    ):
        of_bob, _ = await rows(bob, "a")
        of_ann = [(await rows(ann, name))[0] for name in "abc"]
        assert [is_running(pid) for pid in of_ann] == [False, True, True]
        assert is_running(of_bob)
        await rows(bob, "b")
        assert [is_running(pid) for pid in (of_bob, *of_ann)] == [False, False, True, True]


async def test_one_client_that_crashes_its_process_again_and_again_harms_nobody(
    tmp_path: Path,
) -> None:
    """Neither by the pause before a restart nor by the breaker that all callers share."""
    path = config(tmp_path, keys(), "[calls]\nbreaker_failures = 2\n", server("t"))
    async with (
        running_gateway(tmp_path, path) as (url, _),
        client_of(url, "modern", "ann") as ann,
        client_of(url, "modern", "bob") as bob,
    ):
        await call(bob, "t_put", value="his")
        for _ in range(5):
            assert (await ann.call_tool("t_die", {})).is_error
        assert (await rows(bob, "t"))[1] == "his"
        assert (await bob.call_tool("t_die", {})).is_error  # the very tool that failed for ann
        assert "was ended by SIGABRT" in said(await bob.call_tool("t_die", {}))


async def test_no_server_outlives_a_gateway_that_is_killed(tmp_path: Path) -> None:
    """Neither one that ignores the end of its stdin and SIGTERM, nor what it started."""
    path = config(tmp_path, server("deaf", "ledger", "", "deaf"), server("t"))
    async with running_gateway(tmp_path, path) as (url, process):
        async with client_of(url, "modern") as client:
            pids = [int(pid) for pid in (await call(client, "deaf_read")).split()]
            pids.append((await rows(client, "t"))[0])
        assert all(is_running(pid) for pid in pids)
        os.kill(process.pid, signal.SIGKILL)
        with anyio.fail_after(10):
            while any(is_running(pid) for pid in pids):  # noqa: ASYNC110 - they tell nobody
                await anyio.sleep(0.05)
