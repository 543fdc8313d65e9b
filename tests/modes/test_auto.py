"""Which mode `auto` chooses, and the table of clients that it reads."""

from __future__ import annotations

import re

import pytest

from pegboard.core.calls import Caller
from pegboard.core.options import MODES, ModeName, Options, make_options
from pegboard.core.tools import Catalog, Tool, constant_definition
from pegboard.errors import ConfigError
from pegboard.modes.auto import choose_mode, fits_budget, known_clients


def catalog(tools: int) -> Catalog:
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    return Catalog(
        Tool(f"tool_{n}", constant_definition(schema), description="Does one thing well. " * 5)
        for n in range(tools)
    )


SMALL, LARGE = catalog(3), catalog(500)
MODERN, LEGACY = Caller(era="modern"), Caller(era="legacy")


def chosen(asked: str, caller: Caller, tools: Catalog = LARGE, **options: object) -> ModeName:
    return choose_mode(asked, caller, tools, make_options(**options))


@pytest.mark.parametrize("caller", [MODERN, LEGACY])
def test_a_small_catalog_is_listed_and_a_large_one_is_searched(caller: Caller) -> None:
    assert chosen("auto", caller, SMALL) == "eager"
    assert chosen("auto", caller, LARGE) == "proxy"


@pytest.mark.parametrize("mode", MODES)
def test_the_requested_mode_wins_over_size_and_client(mode: ModeName) -> None:
    assert chosen(mode, Caller(era="legacy", client="codex-mcp-client"), SMALL) == mode


def test_dynamic_is_only_for_the_session_era() -> None:
    assert chosen("dynamic", LEGACY) == "dynamic"
    assert chosen("dynamic", MODERN) == "proxy"


def test_a_client_that_defers_tools_itself_gets_everything_in_the_session_era() -> None:
    assert chosen("auto", Caller(era="legacy", client="claude-code")) == "eager"
    assert chosen("auto", Caller(era="legacy", client="claude-ai")) == "proxy"


def test_in_the_modern_era_the_name_of_a_client_changes_nothing() -> None:
    """2026-07-28: `clientInfo` SHOULD NOT change behaviour."""
    for client in known_clients():
        assert chosen("auto", Caller(era="modern", client=client)) == "proxy"
    rules = {"claude-code": "index"}
    caller = Caller(era="modern", client="claude-code")
    assert chosen("auto", caller, client_modes=rules) == "proxy"


def test_a_rule_for_a_client_wins_over_the_table() -> None:
    rules = {"claude-code": "index", "goose": "dynamic", "Zed": "auto"}
    for client, mode in {"claude-code": "index", "goose": "dynamic", "Zed": "proxy"}.items():
        caller = Caller(era="legacy", client=client)
        assert chosen("auto", caller, client_modes=rules) == mode


def test_where_the_size_is_not_known_the_list_stays_constant() -> None:
    assert choose_mode("auto", MODERN, SMALL, make_options(), complete=False) == "proxy"


def test_the_budget_is_a_setting() -> None:
    assert chosen("auto", MODERN, LARGE, eager_budget=1_000_000) == "eager"
    assert chosen("auto", MODERN, SMALL, eager_budget=0) == "proxy"


def test_a_budget_stops_reading_schemas_where_it_is_exceeded() -> None:
    read: list[str] = []

    def tool(name: str) -> Tool:
        def define() -> object:
            read.append(name)
            return constant_definition({"type": "object", "description": "x" * 4_000})()

        return Tool(name, define)  # pyright: ignore[reportArgumentType] the same shape

    assert not fits_budget(Catalog(tool(f"t{n:03}") for n in range(200)), 4_000)
    assert len(read) < 10


def test_an_unknown_mode_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'hierarchy'"):
        chosen("hierarchi", MODERN)


def test_every_client_of_the_table_has_a_source_that_can_be_looked_up() -> None:
    table = known_clients()
    assert len(table) >= 12
    for name, client in table.items():
        assert client.name == name
        assert client.title
        assert re.match(r"https://\S+$", client.source) or (
            client.source == "observed" and client.note
        ), name


def test_the_cautious_side_is_taken_where_a_client_is_only_partly_known() -> None:
    table = known_clients()
    assert {n for n, c in table.items() if c.defers_tools} == {
        "claude-code",
        "cursor-vscode",
        "codex-mcp-client",
    }
    assert not table["Zed"].follows_list_changed


def test_a_client_is_known_by_the_start_of_a_longer_name() -> None:
    caller = Caller(era="legacy", client="codex-mcp-client (via mcp-remote 0.1.37)")
    tools = [
        Tool(f"t{n}", constant_definition({"type": "object"}), description="word " * 400)
        for n in range(60)
    ]
    assert choose_mode("auto", caller, Catalog(tools), Options()) == "eager"
    other = Caller(era="legacy", client="codex-mcp-clientele")
    assert choose_mode("auto", other, Catalog(tools), Options()) == "proxy"
