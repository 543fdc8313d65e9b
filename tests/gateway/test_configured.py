"""What a configuration says of single servers and APIs, and that a new one takes effect."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest
from tests.gateway.support import client_of, polite, said, searched, write

from pegboard.config.loader import Configuration, load_configuration
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.gateway.gateway import Gateway

pytestmark = pytest.mark.anyio

API = """
openapi: 3.1.0
info: {title: Books, version: "1"}
servers: [{url: "http://127.0.0.1:9"}]
paths:
  /books:
    get: {operationId: list_books, summary: List all books, tags: [catalog], responses: {}}
  /books/{id}:
    delete:
      operationId: burn_book
      summary: Burn a book
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
      responses: {}
"""


def toml(folder: Path, text: str) -> Configuration:
    path = folder / "pegboard.toml"
    path.write_text(text, encoding="utf-8")
    found = load_configuration(path, ConfigEnvironment(os.environ, folder, folder))
    assert not found.problems, found.problems
    return found


def server(name: str, **settings: str) -> str:
    script = polite()
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items())
    return f"[servers.{name}]\ncommand = '{script['command']}'\nargs = {script['args']}\n{lines}"


def names(gateway: Gateway) -> list[str]:
    return [gateway.board.catalog.address(tool) for tool in gateway.board.tools()]


async def test_prefix_category_and_filters_of_each_server_are_honoured(tmp_path: Path) -> None:
    configuration = toml(
        tmp_path,
        server("a", prefix="''", category="'talk'")
        + server("b", prefix="'bee'")
        + server("c", exclude="['e*']"),
    )
    with anyio.fail_after(20):
        async with Gateway(configuration, folder=tmp_path / "home") as gateway:
            await gateway.wait_until_listed()
            assert names(gateway) == ["echo", "bee_echo"]
            assert [t.category for t in gateway.board.tools()] == ["talk", "b"]


async def test_pins_are_found_by_name_by_glob_and_by_server(tmp_path: Path) -> None:
    text = "mode = 'proxy'\npins = ['a_*']\n"
    configuration = toml(
        tmp_path, text + server("a") + server("b", pins="['ec*']") + server("c", mode="'eager'")
        + server("d"),
    )  # fmt: skip
    with anyio.fail_after(20):
        async with (
            Gateway(configuration, folder=tmp_path / "home") as gateway,
            client_of(gateway, "modern") as client,
        ):
            await gateway.wait_until_listed()
            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert {"search_tools", "a_echo", "b_echo", "c_echo"} <= listed
            assert "d_echo" not in listed


async def test_a_lazy_server_among_eager_ones_is_found_by_search(tmp_path: Path) -> None:
    text = "mode = 'eager'\n" + server("a") + server("b", mode="'proxy'")
    with anyio.fail_after(20):
        async with (
            Gateway(toml(tmp_path, text), folder=tmp_path / "home") as gateway,
            client_of(gateway, "modern") as client,
        ):
            await gateway.wait_until_listed()
            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert "a_echo" in listed
            assert "b_echo" not in listed
            assert "b_echo" in await searched(client, "echo")


async def test_an_openapi_source_is_mounted_with_the_servers_and_cached(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text(API)
    text = "[sources.books]\nopenapi = 'api.yaml'\n" + server("a")
    with anyio.fail_after(20):
        async with (
            Gateway(toml(tmp_path, text), folder=tmp_path / "home") as gateway,
            client_of(gateway, "modern") as client,
        ):
            await gateway.wait_until_listed()
            assert set(names(gateway)) == {"a_echo", "books_list_books", "books_burn_book"}
            found = {t.name: t for t in gateway.board.tools()}
            listing = found["books_list_books"]
            assert (listing.category, listing.section) == ("books", "catalog")
            assert found["books_burn_book"].risk == "destructive"
            told = await client.call_tool("books_list_books", {})
            assert told.is_error
            assert "books cannot be reached" in said(told)
            assert said(await client.call_tool("a_echo", {})).isdigit()
    again = Gateway(toml(tmp_path, text), folder=tmp_path / "home")
    again.restore()
    assert again.pending == set(), "nothing has to be looked at on the next start"
    assert {t.name: t.tags for t in again.board.tools()}["books_list_books"] == ("catalog",)


async def test_names_are_the_same_after_a_restart(tmp_path: Path) -> None:
    text = server("a-b") + server("a_b")
    with anyio.fail_after(20):
        async with Gateway(toml(tmp_path, text), folder=tmp_path / "home") as gateway:
            await gateway.wait_until_listed()
            first = {t.id: t.name for t in gateway.board.tools()}
    again = Gateway(toml(tmp_path, text), folder=tmp_path / "home")
    again.restore()
    assert {t.id: t.name for t in again.board.tools()} == first
    assert len(set(first.values())) == 2


async def test_a_reload_takes_new_servers_and_leaves_the_others_running(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with (
            Gateway(toml(tmp_path, server("a") + server("b")), folder=tmp_path / "h") as gateway,
            client_of(gateway, "legacy") as client,
        ):
            await gateway.wait_until_listed()
            pid = said(await client.call_tool("a_echo", {}))
            await gateway.reload(toml(tmp_path, server("a") + server("c")))
            await gateway.wait_until_listed()
            assert names(gateway) == ["a_echo", "c_echo"]
            assert said(await client.call_tool("a_echo", {})) == pid
            assert said(await client.call_tool("c_echo", {})).isdigit()


async def test_a_reload_takes_new_settings(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with Gateway(toml(tmp_path, server("a")), folder=tmp_path / "h") as gateway:
            await gateway.wait_until_listed()
            await gateway.reload(toml(tmp_path, "mode = 'index'\n" + server("a", prefix="'x'")))
            assert gateway.options.mode == "index"
            assert names(gateway) == ["x_echo"]


async def test_nothing_is_started_for_a_second_start(tmp_path: Path) -> None:
    starts = tmp_path / "starts.txt"
    servers = {"a": {**polite(), "args": [*polite()["args"], str(starts)]}}
    configuration = load_configuration(
        write(tmp_path, servers), ConfigEnvironment(os.environ, tmp_path, tmp_path)
    )
    with anyio.fail_after(20):
        async with Gateway(configuration, folder=tmp_path / "h") as gateway:
            await gateway.wait_until_listed()
        assert starts.read_text().count("started") == 1
        async with (
            Gateway(configuration, folder=tmp_path / "h") as gateway,
            client_of(gateway, "modern") as client,
        ):
            assert [t.name for t in (await client.list_tools()).tools] == ["a_echo"]
            assert await client.list_resources()
            assert starts.read_text().count("started") == 1
            await client.call_tool("a_echo", {})
            assert starts.read_text().count("started") == 2
