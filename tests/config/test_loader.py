"""`pegboard.toml`: settings, servers of its own, servers of others, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest

from pegboard.config.loader import load_configuration
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.config.settings import Settings
from pegboard.errors import ConfigError

Write = Callable[[str, str], Path]


def test_an_empty_file_is_all_defaults(write: Write, around: ConfigEnvironment) -> None:
    configuration = load_configuration(write("pegboard.toml", ""), around)
    assert configuration.settings == Settings()
    assert configuration.upstreams == ()


def test_settings_are_read_and_frozen(write: Write, around: ConfigEnvironment) -> None:
    text = """
mode = "proxy"
pins = ["a", "b"]
[clients]
claude-code = "eager"
[names]
style = "bare"
separator = "."
[risk_rules]
destructive = ["*.delete_*"]
[results]
spill_tokens = 0
cache = { "*.get_*" = 30 }
[store]
url = "redis://${HOST}:6379/0"
[[auth.keys]]
principal = "ci"
sha256 = "00"
"""
    settings = load_configuration(write("pegboard.toml", text), around).settings
    assert (settings.mode, settings.pins) == ("proxy", ("a", "b"))
    assert settings.clients == {"claude-code": "eager"}
    assert (settings.names.style, settings.names.separator) == ("bare", ".")
    assert settings.risk_rules.destructive == ("*.delete_*",)
    assert (settings.results.spill_tokens, settings.results.cache) == (0, {"*.get_*": 30.0})
    assert settings.store.url == "redis://example.org:6379/0"
    assert settings.auth.keys[0].principal == "ci"
    with pytest.raises(FrozenInstanceError):
        settings.mode = "eager"  # pyright: ignore[reportAttributeAccessIssue]


def test_servers_get_the_defaults_of_the_file(write: Write, around: ConfigEnvironment) -> None:
    text = """
[calls]
timeout = 10
[upstreams]
idle_stop = 0
start_timeout = 3
[servers.a]
command = "~/bin/a"
cwd = "work"
[servers.b]
url = "https://h/mcp"
timeout = 99
"""
    path = write("pegboard.toml", text)
    a, b = load_configuration(path, around).upstreams
    assert a.command == str(around.home / "bin/a")
    assert a.cwd == str(path.parent / "work")
    assert (a.timeout, a.idle_stop, a.start_timeout) == (10, 0, 3)
    assert (b.timeout, b.origin) == (99, str(path))


def test_imported_servers_can_be_changed_by_name(write: Write, around: ConfigEnvironment) -> None:
    write(
        "home/.cursor/mcp.json",
        """{"mcpServers": {
             "gh": {"command": "gh", "env": {"A": "1"}, "timeout": 5},
             "off": {"command": "off", "disabled": true},
             "on": {"command": "on"}}}""",
    )
    text = """
import = ["~/.cursor/mcp.json"]
[servers.gh]
category = "code"
exclude = ["delete_*"]
prefix = ""
env = { B = "2" }
[servers.off]
disabled = false
[servers.on]
disabled = true
"""
    configuration = load_configuration(write("pegboard.toml", text), around)
    gh, off = configuration.upstreams
    assert (gh.category, gh.exclude, gh.prefix) == ("code", ("delete_*",), "")
    assert (gh.command, gh.env, gh.timeout) == ("gh", {"A": "1", "B": "2"}, 5)
    assert (off.name, off.disabled) == ("off", False)
    assert [s.name for s in configuration.disabled] == ["on"]
    assert configuration.files[1] == around.home / ".cursor/mcp.json"


def test_one_server_in_two_clients_counts_once_and_a_different_one_is_reported(
    write: Write, around: ConfigEnvironment
) -> None:
    write("a.json", '{"mcpServers": {"same": {"command": "x"}, "other": {"command": "one"}}}')
    same = '"same": {"command": "x", "disabled": true}'
    write("b.json", f'{{"mcpServers": {{{same}, "other": {{"command": "two"}}}}}}')
    write("c.json", '{"mcpServers": {"other": {"command": "three"}}}')
    configuration = load_configuration(
        write("pegboard.toml", 'import = ["a.json", "b.json", "c.json"]'), around
    )
    assert {s.name: s.command for s in configuration.upstreams} == {"same": "x", "other": "one"}
    (problem,) = configuration.problems
    assert "c.json: 'other' is the name of another server" in problem.message
    assert "b.json, " in problem.message, "one problem, however many files have it"


def test_an_import_that_fails_leaves_the_others(write: Write, around: ConfigEnvironment) -> None:
    write("good.json", '{"mcpServers": {"g": {"command": "x"}}}')
    write("broken.json", '{"mcpServers": {')
    text = 'import = ["none.json", "broken.json", "good.json"]'
    configuration = load_configuration(write("pegboard.toml", text), around)
    assert [s.name for s in configuration.upstreams] == ["g"]
    assert ["none.json" in str(p) or "broken.json:1" in str(p) for p in configuration.problems] == [
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("mdoe = 'proxy'", 1, "mdoe: there is no such setting. Did you mean 'mode'?"),
        (
            "\n[names]\nseperator = '.'",
            3,
            "names.seperator: there is no such setting. Did you mean",
        ),
        (
            "[servers.a]\ncomand = 'x'",
            2,
            "servers.a.comand: there is no such setting. Did you mean",
        ),
        ("[zzzzqq]\n", 1, "zzzzqq: there is no such setting. Known: mode, pins"),
        ("mode = 'proxi'", 1, "mode: this should be 'auto', 'eager'"),
        ("pins = 'a'", 1, "pins: this should be a list; this is text"),
        ("[calls]\n\ntimeout = '5'", 3, "calls.timeout: this should be a number; this is text"),
        ("[calls]\ntimeout = 0", 2, "calls.timeout: this should be greater than 0"),
        ("[servers]\na = 3", 2, "servers.a: this should be a table; this is a number"),
        ("[sources.pets]\nbase_url = 'x'", 1, "sources.pets.openapi: this is required"),
        ("instructions = '${NOPE}'", 1, "instructions: the variable NOPE is not set"),
        ("mode = ", 1, "not valid TOML"),
    ],
)
def test_what_is_wrong_with_the_file_is_raised_with_its_line(
    text: str, line: int, says: str, write: Write, around: ConfigEnvironment
) -> None:
    path = write("pegboard.toml", text)
    with pytest.raises(ConfigError) as caught:
        load_configuration(path, around)
    assert caught.value.message.startswith(f"{path}:{line}: ")
    assert says in caught.value.message


def test_everything_that_is_wrong_is_said_at_once(write: Write, around: ConfigEnvironment) -> None:
    path = write("pegboard.toml", "mdoe = 1\nrisk = 'x'\n[calls]\nqueue = -1\n")
    with pytest.raises(ConfigError) as caught:
        load_configuration(path, around)
    assert sorted(p["line"] for p in caught.value.details["problems"]) == [1, 2, 4]


def test_a_server_with_an_unset_variable_is_left_out_alone(
    write: Write, around: ConfigEnvironment
) -> None:
    text = '[servers.a]\ncommand = "x"\nenv = { K = "${NOPE}" }\n[servers.b]\ncommand = "y"\n'
    configuration = load_configuration(write("pegboard.toml", text), around)
    assert [s.name for s in configuration.upstreams] == ["b"]
    (problem,) = configuration.problems
    assert "pegboard.toml:3: servers.a.env.K: the variable NOPE is not set" in problem.message


def test_changes_to_a_server_that_nobody_defines_name_the_nearest(
    write: Write, around: ConfigEnvironment
) -> None:
    write("m.json", '{"mcpServers": {"github": {"command": "x"}}}')
    text = 'import = ["m.json"]\n[servers.githib]\ncategory = "c"\n'
    configuration = load_configuration(write("pegboard.toml", text), around)
    (problem,) = configuration.problems
    assert "pegboard.toml:2: servers.githib" in problem.message
    assert "Did you mean 'github'?" in problem.message


def test_two_servers_of_one_name_in_toml_are_a_syntax_error(
    write: Write, around: ConfigEnvironment
) -> None:
    with pytest.raises(ConfigError, match=r"pegboard\.toml:3: .*twice"):
        load_configuration(
            write("pegboard.toml", "[servers.a]\ncommand='x'\n[servers.a]\ncommand='y'\n"), around
        )


def test_pins_come_from_the_environment_too(write: Write, around: ConfigEnvironment) -> None:
    env = {**around.env, "ALWAYS_AVAILABLE_TOOLS": "b, c,,"}
    wider = replace(around, env=env)
    settings = load_configuration(write("pegboard.toml", 'pins = ["a", "b"]'), wider).settings
    assert settings.pins == ("a", "b", "c")


def test_sources_carry_their_credentials(write: Write, around: ConfigEnvironment) -> None:
    text = """
[sources.token]
openapi = "api.yaml"
auth = { bearer = "${TOKEN}" }
[sources.user]
openapi = "https://h/openapi.json"
base_url = "https://h/v2"
auth = { basic = { username = "u", password = "${TOKEN}" } }
[sources.key]
openapi = "/etc/api.json"
auth = { api_key = { name = "k", value = "${TOKEN}", place = "query" } }
timeout = 5
[sources.both]
openapi = "x.json"
auth = { bearer = "a", api_key = { name = "k", value = "v" } }
[sources.off]
openapi = "y.json"
disabled = true
"""
    path = write("pegboard.toml", text)
    configuration = load_configuration(path, around)
    token, user, key = configuration.sources
    assert token.document == str(path.parent / "api.yaml")
    assert token.headers == {"Authorization": "Bearer s3cret"}
    assert user.headers == {"Authorization": "Basic dTpzM2NyZXQ="}
    assert (key.query, key.timeout, key.document) == ({"k": "s3cret"}, 5, "/etc/api.json")
    assert "s3cret" not in repr(configuration.sources)
    assert "sources.both.auth: set only one of `bearer`, `basic` and `api_key`" in str(
        configuration.problems[0]
    )


def test_what_a_server_says_of_sharing_counts_more_than_the_default(
    write: Write, around: ConfigEnvironment
) -> None:
    text = """
[upstreams]
isolation = "principal"
[servers]
plain = { command = "x" }
open = { command = "x", stateless = true }
strict = { command = "x", stateless = true, isolation = "session" }
kept = { command = "x", stateless = false }
"""
    found = {
        s.name: s.sharing
        for s in load_configuration(write("pegboard.toml", text), around).upstreams
    }
    assert found == {
        "plain": "principal", "open": "shared", "strict": "session", "kept": "principal",
    }  # fmt: skip


def test_headers_for_each_caller_where_they_cannot_be_sent_are_an_error(
    write: Write, around: ConfigEnvironment
) -> None:
    text = """
[servers.old]
url = "https://h/sse"
stateless = true
headers = { X-Key = "{{env:KEY_{principal}}}" }
[servers.new]
url = "https://h/mcp"
headers = { X-Key = "{{env:KEY_{principal}}}" }
[sources.shop]
openapi = "shop.yaml"
headers = { X-Key = "{{env:KEY_{principal}}}" }
"""
    configuration = load_configuration(write("pegboard.toml", text), around)
    assert [spec.name for spec in configuration.upstreams] == ["new"]
    assert configuration.sources == ()
    old, shop = configuration.problems
    assert "'old' has headers for each caller" in old.message
    assert (
        "sources.shop.headers.X-Key: only MCP servers can have headers with a credential"
        in shop.message
    )


def test_a_source_cannot_have_the_name_of_a_server(write: Write, around: ConfigEnvironment) -> None:
    text = '[servers.a]\ncommand = "x"\n[sources.a]\nopenapi = "y.json"\n'
    configuration = load_configuration(write("pegboard.toml", text), around)
    assert configuration.sources == ()
    assert "pegboard.toml:3: sources.a: a server has this name" in str(configuration.problems[0])


def test_a_clients_file_is_a_configuration_too(write: Write, around: ConfigEnvironment) -> None:
    path = write("mcp.json", '{"mcpServers": {"a": {"command": "x"}}}')
    configuration = load_configuration(path, around)
    assert [s.name for s in configuration.upstreams] == ["a"]
    assert configuration.files == (path,)


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:x/mcp", "http://", "http://a:0/"])
def test_a_url_without_a_valid_host_leaves_the_other_servers(
    url: str, write: Write, around: ConfigEnvironment
) -> None:
    text = f'[servers.bad]\nurl = "{url}"\n[servers.good]\ncommand = "npx"\n'
    configuration = load_configuration(write("pegboard.toml", text), around)
    assert [spec.name for spec in configuration.upstreams] == ["good"]
    assert "no valid host" in configuration.unusable["bad"]
