"""One server among good ones misbehaves, each a real process: what the model reads of it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from tests.gateway.support import (
    ROOT,
    called,
    client_of,
    faulty,
    polite,
    running,
    searched,
    served,
    write,
)

from pegboard.config.loader import Configuration, load_configuration
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.config.settings import Settings
from pegboard.gateway.gateway import Gateway

pytestmark = pytest.mark.anyio
PROXY = Settings(mode="proxy")


def specs(folder: Path, servers: dict[str, Any]) -> Any:
    found = load_configuration(
        write(folder, servers), ConfigEnvironment(os.environ, folder, folder)
    )
    assert not found.problems
    return found.upstreams


def beside_a_good_one(folder: Path, fault: str, **settings: Any) -> Any:
    """A gateway with one good server and one that is not."""
    bad = {**faulty(fault), **settings}
    return running(specs(folder, {"bad": bad, "good": polite()}), folder, settings=PROXY)


async def still_good(client: Client) -> None:
    assert (await called(client, "good_echo")).isdigit(), "the other server goes on"


@pytest.mark.parametrize(
    ("fault", "settings", "reason"),
    [
        ("dies_at_start", {}, "exited with code 7"),
        ("only_garbage", {"start_timeout": 0.5}, "could not read my configuration"),
        ("mute", {"start_timeout": 0.5}, "did not answer within 0.5 s"),
        ("same_cursor", {}, "never end"),
        ("endless_cursor", {}, "never end"),
    ],
)
async def test_a_server_that_cannot_be_listed_is_named_with_the_reason(
    fault: str, settings: Any, reason: str, tmp_path: Path
) -> None:
    async with (
        beside_a_good_one(tmp_path, fault, **settings) as gateway,
        client_of(gateway, "legacy") as client,
    ):
        found = await searched(client, "echo")
        assert "good_echo" in found
        assert "Not available: " in found
        assert reason in found
        await still_good(client)


async def test_a_command_that_does_not_exist_is_named_with_what_to_mend(tmp_path: Path) -> None:
    servers = {"bad": {"command": "no-such-command-anywhere"}, "good": polite()}
    async with served(tmp_path, servers, "--mode", "proxy") as client:
        found = await searched(client, "echo")
        assert "no command 'no-such-command-anywhere'" in found
        await still_good(client)
    assert "no-such-command-anywhere" in (tmp_path / "stderr.txt").read_text()


async def test_garbage_between_messages_does_no_harm(tmp_path: Path) -> None:
    async with (
        beside_a_good_one(tmp_path, "garbage") as gateway,
        client_of(gateway, "legacy") as client,
    ):
        assert await called(client, "bad_echo") == "fine"
        await still_good(client)


async def test_a_server_that_dies_during_a_call_is_reported_and_restarted(tmp_path: Path) -> None:
    bad = faulty("dies_in_call")
    servers = specs(tmp_path, {"bad": bad, "good": polite()})
    async with running(servers, tmp_path, settings=PROXY) as gateway:
        # The server lists `echo` alone; its other tool is called past the catalog.
        kept = gateway.catalogs["bad"]
        entries = [*kept.entries(), {"name": "die", "inputSchema": {"type": "object"}}]
        gateway.catalogs.update(
            "bad", gateway.catalogs.save(gateway.catalogs.specs["bad"], kept.about, entries)
        )
        gateway._mount()  # pyright: ignore[reportPrivateUsage]
        async with client_of(gateway, "modern") as client:
            told = await called(client, "bad_die")
            assert "was ended by SIGKILL" in told
            assert "Whether the call took effect is not known" in told
            await still_good(client)
            assert (await called(client, "bad_echo")).isdigit()


async def test_an_answer_after_the_timeout_is_a_timeout_to_act_on(tmp_path: Path) -> None:
    servers = {"bad": {**faulty("late"), "timeout": 0.2}, "good": polite()}
    async with running(specs(tmp_path, servers), tmp_path, settings=PROXY) as gateway:
        kept = gateway.catalogs["bad"]
        entries = [{"name": "slow", "inputSchema": {"type": "object"}}]
        spec = gateway.catalogs.specs["bad"]
        gateway.catalogs.update("bad", gateway.catalogs.save(spec, kept.about, entries))
        gateway._mount()  # pyright: ignore[reportPrivateUsage]
        async with client_of(gateway, "legacy") as client:
            told = await called(client, "bad_slow")
            assert "within 0.2 s" in told
            assert "check before you call again" in told
            await still_good(client)


async def test_ten_thousand_tools_are_searched_like_any(tmp_path: Path) -> None:
    async with (
        beside_a_good_one(tmp_path, "many_tools") as gateway,
        client_of(gateway, "legacy") as client,
    ):
        assert len(gateway.board.known_catalog) == 10_001
        assert "bad_tool_9876" in await searched(client, "tool_9876")
        await still_good(client)


async def test_an_invalid_tool_is_left_out_and_the_good_ones_stay(tmp_path: Path) -> None:
    servers = {"bad": faulty("bad_tool"), "good": polite()}
    async with served(tmp_path, servers, "--mode", "eager") as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"bad_echo", "good_echo"}
    assert "bad: bad: it has no `inputSchema` object" in (tmp_path / "stderr.txt").read_text()


async def test_a_result_of_50_mb_is_stored_and_can_be_read(tmp_path: Path) -> None:
    async with (
        beside_a_good_one(tmp_path, "huge") as gateway,
        client_of(gateway, "legacy") as client,
    ):
        told = await called(client, "bad_echo", {"size": 50_000_000})
        assert len(told) < 100_000
        assert "read_result" in told
        await still_good(client)


async def test_announcements_without_end_do_not_keep_the_gateway_busy(tmp_path: Path) -> None:
    async with (
        beside_a_good_one(tmp_path, "loop") as gateway,
        client_of(gateway, "legacy") as client,
    ):
        for _ in range(3):
            assert (await called(client, "bad_echo")).isdigit()
            await still_good(client)


async def test_tools_that_change_while_searches_run_are_found_afterwards(tmp_path: Path) -> None:
    async with (
        beside_a_good_one(tmp_path, "changing") as gateway,
        client_of(gateway, "legacy") as client,
    ):
        first = next(t.name for t in gateway.board.tools() if t.server == "bad")
        while first in {t.name for t in gateway.board.tools()}:
            await called(client, first)  # whereupon it announces other tools
            assert "good_echo" in await searched(client, "echo")
        later = next(t.name for t in gateway.board.tools() if t.server == "bad")
        assert later in await searched(client, later)


async def test_a_catalog_cut_short_by_a_kill_is_written_anew(tmp_path: Path) -> None:
    servers = specs(tmp_path, {"good": polite()})
    async with running(servers, tmp_path):
        pass
    (kept,) = (tmp_path / "catalogs").glob("*.catalog")
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    (kept.parent / "left-behind.tmp").write_bytes(b"half")
    async with running(servers, tmp_path) as gateway:
        assert [t.name for t in gateway.board.tools()] == ["good_echo"]
    assert kept.read_bytes() == whole


async def test_without_a_folder_to_write_everything_works_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where a folder should be")
    async with served(tmp_path, {"good": polite()}, "--mode", "proxy") as client:
        await still_good(client)
    told = (tmp_path / "stderr.txt").read_text()
    assert "Catalogs cannot be stored in" in told
    assert told.count("Catalogs cannot be stored in") == 1


# Configurations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"mcpServers": {"a": {"command": "x",,}}}', "mcp.json"),
        ('{"no servers": 1}', "no servers are defined here"),
    ],
)
async def test_a_file_that_cannot_be_understood_ends_with_3_and_a_sentence(
    text: str, told: str, tmp_path: Path
) -> None:
    command = _command(write(tmp_path, text))
    done = await anyio.run_process(command, check=False, env=_env(tmp_path))
    assert done.returncode == 3
    assert told in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()


async def test_a_server_with_a_missing_variable_is_left_out_and_named(tmp_path: Path) -> None:
    bad = polite(env={"TOKEN": "${NO_SUCH_VARIABLE_HERE}"})
    async with served(tmp_path, {"bad": bad, "good": polite()}, "--mode", "proxy") as client:
        await still_good(client)
    assert "NO_SUCH_VARIABLE_HERE is not set" in (tmp_path / "stderr.txt").read_text()


async def test_unknown_keys_and_repeated_names_are_reported_and_the_rest_is_served(
    tmp_path: Path,
) -> None:
    good = json.dumps(polite())
    twice = f'"good": {{"command": "no"}}, "good": {good}'
    text = f'{{"mcpServers": {{{twice}, "odd": {{"comand": 1}}}}}}'
    async with served(tmp_path, text, "--mode", "proxy") as client:
        await still_good(client)
    told = (tmp_path / "stderr.txt").read_text()
    assert "two servers have this name" in told
    assert "did you mean 'command'" in told


async def test_a_server_that_never_answers_does_not_hold_up_the_first_answers(
    tmp_path: Path,
) -> None:
    servers = specs(tmp_path, {"bad": faulty("mute", timeout=0.5), "good": polite()})
    configuration = Configuration(PROXY, upstreams=servers)
    with anyio.fail_after(20):
        async with (
            Gateway(configuration, folder=tmp_path, listing_wait=0.5) as gateway,
            client_of(gateway, "modern") as client,
        ):
            found = await searched(client, "echo")
            assert "good_echo" in found
            assert "Still starting: bad" in found
            assert "Still starting: bad" in await called(client, "bad_echo")
            listed = await client.list_tools()
            assert listed.ttl_ms, "the list is the same when it has started"
            everything: Any = {"io.github.pegboard/lazy": False}
            whole = await client.list_tools(meta=everything)
            assert whole.ttl_ms == 0, "a list that is not whole yet is not to be kept"
            await still_good(client)


def _command(config: Path) -> list[str]:
    return [sys.executable, "-m", "pegboard", "serve", "--config", str(config)]


def _env(home: Path) -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT / "src"), "PEGBOARD_HOME": str(home / "home")}
