"""Profiles of a gateway: by URL, by query, by flag, by environment and by configuration."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from mcp import Client, MCPError
from tests.e2e.test_serving import running_gateway
from tests.gateway.support import SDK_MODES, called, polite, searched, served_config

from pegboard.config.loader import load_configuration
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.errors import ConfigError
from pegboard.gateway.config_source import ConfigSource
from pegboard.gateway.from_settings import build_policy

pytestmark = pytest.mark.anyio


def write_settings(folder: Path, more: str = "") -> Path:
    """Two servers, and a profile for each."""
    path = folder / "pegboard.toml"
    entry = polite()
    server = f"command = '{entry['command']}'\nargs = ['{entry['args'][0]}']\n"
    path.write_text(
        f'mode = "eager"\n{more}\n[servers.a]\n{server}[servers.b]\n{server}'
        '[profiles.one]\nservers = ["a"]\n[profiles.other]\ntools = ["b.*"]\n'
    )
    return path


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_client_chooses_a_profile_by_its_url(era: str, tmp_path: Path) -> None:
    mode = SDK_MODES[era]
    async with running_gateway(tmp_path, write_settings(tmp_path)) as (url, _):
        printed = (tmp_path / "stderr.txt").read_text()
        assert f"clients connect to {url}/mcp" in printed
        assert f"the dashboard is at {url}/" in printed
        async with Client(f"{url}/mcp", mode=mode, cache=None) as client:
            assert await names(client) == ["a_echo", "b_echo"]
        async with Client(f"{url}/mcp/profiles/one", mode=mode, cache=None) as client:
            assert await names(client) == ["a_echo"]
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool("b_echo", {})
        async with Client(f"{url}/mcp/profiles/other/proxy", mode=mode, cache=None) as client:
            assert "search_tools" in await names(client)
            found = await searched(client, "echo")
            assert "b_echo" in found
            assert "a_echo" not in found
            assert (await called(client, "b_echo")).isdigit()
        async with Client(f"{url}/mcp?profile=other", mode=mode, cache=None) as client:
            assert await names(client) == ["b_echo"]


async def test_an_unknown_profile_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, write_settings(tmp_path)) as (url, _):
        with pytest.raises((MCPError, httpx2.HTTPError, ExceptionGroup)) as raised:
            async with Client(f"{url}/mcp/profiles/nope", mode="auto", cache=None) as client:
                await client.list_tools()
        assert "There is no profile 'nope'. Profiles: one, other." in _messages(raised.value)


def _messages(exc: BaseException) -> str:
    if isinstance(exc, BaseExceptionGroup):
        return " ".join(_messages(one) for one in exc.exceptions)
    return str(exc)


async def test_a_flag_chooses_the_profile_on_stdio(tmp_path: Path) -> None:
    config = write_settings(tmp_path)
    for _ in range(2):  # the second start answers from what the first has recorded
        async with served_config(config, tmp_path, "--profile", "one") as client:
            assert await names(client) == ["a_echo"]
        async with served_config(config, tmp_path, "--profile", "other") as client:
            assert await names(client) == ["b_echo"]


def test_the_environment_goes_before_the_configured_profile(tmp_path: Path) -> None:
    path = write_settings(tmp_path, 'profile = "one"')
    assert build_policy(ConfigSource.from_path(path, environ={}).read().settings).profile == "one"
    environ = {"PEGBOARD_PROFILE": "other"}
    settings = ConfigSource.from_path(path, environ=environ).read().settings
    assert build_policy(settings).profile == "other"


def test_a_configured_profile_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    path = write_settings(tmp_path, 'profile = "nope"')
    settings = ConfigSource.from_path(path, environ={}).read().settings
    with pytest.raises(ConfigError, match="There is no profile 'nope'"):
        build_policy(settings)


def test_another_pegboard_toml_is_imported_with_its_servers_and_profiles(tmp_path: Path) -> None:
    write_settings(tmp_path)
    inner = tmp_path / "client" / "pegboard.toml"
    inner.parent.mkdir()
    inner.write_text('import = ["../pegboard.toml"]\nprofile = "one"\n')
    environment = ConfigEnvironment({}, tmp_path, tmp_path)
    found = load_configuration(inner, environment)
    assert not found.problems
    assert [spec.name for spec in found.upstreams] == ["a", "b"]
    assert set(found.settings.profiles) == {"one", "other"}
    assert found.settings.mode == "auto", "other settings are not imported"
    assert tmp_path / "client" / "../pegboard.toml" in found.files


def test_files_that_import_each_other_are_reported(tmp_path: Path) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text('import = ["second.toml"]\n')
    second.write_text('import = ["first.toml"]\n')
    found = load_configuration(first, ConfigEnvironment({}, tmp_path, tmp_path))
    assert "imports this file" in found.problems[0].message
