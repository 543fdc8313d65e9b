"""Every configured server is shown with its state, and one that is being listed is waited for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from starlette.testclient import TestClient
from tests.gateway.support import client_of, entry, polite, said, searched, served, write

from pegboard import Pegboard
from pegboard.config.loader import load_configuration
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.core.json import JsonObject
from pegboard.core.policy import Policy, Rule
from pegboard.gateway.gateway import Gateway
from pegboard.gateway.http_app import build_gateway_app

pytestmark = pytest.mark.anyio

UNSET = "the variable SHOP_TOKEN is not set"
SLOW = """
import sys, time
time.sleep(float(sys.argv[1]))
sys.path.insert(0, sys.argv[2])
import polite, raw
raw.serve(polite.answer)
"""


def configured(folder: Path) -> Path:
    """One server that works, one with an unset variable, one that is switched off."""
    shop = polite(env={"TOKEN": "${SHOP_TOKEN}"})
    return write(folder, {"post": polite(), "shop": shop, "old": polite(disabled=True)})


def gateway(folder: Path) -> Gateway:
    configuration = load_configuration(configured(folder), ConfigEnvironment({}, folder, folder))
    return Gateway(configuration, folder=folder / "home")


async def test_a_server_left_out_is_named_by_search_and_by_errors(tmp_path: Path) -> None:
    async with served(tmp_path, configured(tmp_path).read_text(), "--mode", "proxy") as client:
        assert f"Not available: shop is left out: {UNSET}" in await searched(client, "echo")
        with pytest.raises(MCPError, match=f"shop is left out: {UNSET}"):
            await client.call_tool("shop_echo", {})
    assert str(tmp_path) not in UNSET


def test_ready_and_the_dashboard_show_every_server(tmp_path: Path) -> None:
    with TestClient(
        build_gateway_app(gateway(tmp_path), "127.0.0.1"), base_url="http://127.0.0.1"
    ) as it:
        state = it.get("/ready").json()
        assert (state["unavailable"], state["disabled"]) == (["shop"], ["old"])
        page = it.get("/").text
    for name, said_of_it in (("shop", "left out"), ("old", "disabled"), ("post", "")):
        row = page.split(f">{name}<", 1)[1].split("</tr>", 1)[0]
        assert said_of_it in row
    assert UNSET in page


def test_doctor_and_measure_show_every_server(tmp_path: Path) -> None:
    config = str(configured(tmp_path))
    env = {**os.environ, "PEGBOARD_HOME": str(tmp_path / "home")}
    env.pop("SHOP_TOKEN", None)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pegboard", *words, "--config", config, "--json"]
        return subprocess.run(command, capture_output=True, text=True, env=env, check=False)

    doctor = run("doctor")
    states = {one["server"]: one["state"] for one in json.loads(doctor.stdout)["servers"]}
    assert states == {"post": "reachable", "shop": "left out", "old": "disabled"}
    assert doctor.returncode == 3
    for _ in range(2):  # read from what is cached, and by asking
        measured = run("measure")
        assert list(json.loads(measured.stdout)["failures"]) == ["shop"]
        assert measured.returncode == 1


def test_a_board_of_a_configuration_tells_of_a_server_left_out(tmp_path: Path) -> None:
    home = {"PEGBOARD_HOME": str(tmp_path / "home")}
    board = Pegboard.from_config(configured(tmp_path), environ=home)
    assert UNSET in getattr(board, "failures")["shop"]  # noqa: B009 - of boards of servers alone


def test_a_server_that_a_later_file_sets_right_is_not_left_out(tmp_path: Path) -> None:
    configured(tmp_path)
    own = tmp_path / "pegboard.toml"
    own.write_text("import = ['mcp.json']\n[servers.shop]\ncommand = 'shop'\n")
    assert load_configuration(own, ConfigEnvironment({}, tmp_path, tmp_path)).unusable == {}
    own.write_text("import = ['mcp.json']\n[servers.mine]\ncommand = '${NOPE}'\nargs = ['${NO}']\n")
    found = load_configuration(own, ConfigEnvironment({}, tmp_path, tmp_path)).unusable
    assert list(found) == ["mine", "shop"]
    assert "NOPE is not set" in found["mine"]
    assert "NO is not set" in found["mine"]


def slow(folder: Path, seconds: float) -> JsonObject:
    script = folder / "slow.py"
    script.write_text(SLOW)
    args = [str(script), str(seconds), str(Path(__file__).parents[1] / "upstream" / "servers")]
    return {"command": sys.executable, "args": args}


@asynccontextmanager
async def starting(
    folder: Path, servers: JsonObject, mode: str = "auto", listing_wait: float = 0.1
) -> AsyncGenerator[tuple[Gateway, Client]]:
    """A gateway that does not wait for its servers, and a client of it."""
    found = load_configuration(write(folder, servers), ConfigEnvironment({}, folder, folder))
    settings = replace(found.settings, mode=mode, risk="single")  # pyright: ignore[reportArgumentType]
    made = Gateway(
        replace(found, settings=settings), folder=folder / "home", listing_wait=listing_wait
    )
    with anyio.fail_after(20):
        async with made as it, client_of(it, "legacy") as client:
            yield it, client


@pytest.mark.parametrize("way", ["direct", "call_tool", "dotted", "tools_dispatch", "call_tools"])
async def test_a_call_waits_for_a_server_that_is_still_being_listed(
    way: str, tmp_path: Path
) -> None:
    calls: dict[str, tuple[str, JsonObject]] = {
        "direct": ("shop_echo", {}),
        "dotted": ("shop.echo", {}),
        "call_tool": ("call_tool", {"name": "shop_echo"}),
        "tools_dispatch": ("tools_dispatch", {"category": "shop", "tool": "echo"}),
        "call_tools": ("call_tools", {"calls": [{"name": "shop_echo"}]}),
    }
    name, arguments = calls[way]
    mode = "hierarchy" if way == "tools_dispatch" else "proxy"
    servers = {"shop": slow(tmp_path, 1.0), "post": polite()}
    async with starting(tmp_path, servers, mode) as (it, client):
        assert "shop" in it.pending
        assert "Unknown" not in said(await client.call_tool(name, arguments))
        assert "shop" not in it.pending


async def test_a_name_of_no_server_is_not_waited_for(tmp_path: Path) -> None:
    servers = {"shop": slow(tmp_path, 30), "post": polite()}
    async with starting(tmp_path, servers) as (_, client):
        began = time.monotonic()
        with pytest.raises(MCPError, match="Unknown tool"):
            await client.call_tool("nowhere_echo", {})
        assert time.monotonic() - began < 3


async def test_a_server_that_a_caller_may_not_know_is_not_waited_for(tmp_path: Path) -> None:
    async with starting(tmp_path, {"shop": slow(tmp_path, 30)}) as (it, client):
        it.board.policy = Policy([Rule(effect="deny", servers=("shop",))])
        began = time.monotonic()
        with pytest.raises(MCPError, match="Unknown tool: 'shop_echo'"):
            await client.call_tool("shop_echo", {})
        assert time.monotonic() - began < 3


async def test_waiting_ends_with_the_timeout_of_a_call(tmp_path: Path) -> None:
    servers = {"shop": {**slow(tmp_path, 30), "timeout": 0.5}}
    async with starting(tmp_path, servers) as (_, client):
        with pytest.raises(MCPError, match="Still starting: shop"):
            await client.call_tool("shop_echo", {})


async def test_waiting_ends_when_the_server_fails(tmp_path: Path) -> None:
    servers = {"shop": entry("misbehaving", "dies_at_start")}
    async with starting(tmp_path, servers, listing_wait=0.0) as (_, client):
        with pytest.raises(MCPError, match="API_KEY is not set"):
            await client.call_tool("shop_echo", {})
