"""Each client's own file gives the servers that the client would run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.config.server_entries import ConfigEnvironment, read_servers, runs_pegboard
from pegboard.errors import ConfigError
from pegboard.oauth.login_options import OAuthOptions
from pegboard.upstream.spec import UpstreamSpec

Write = Callable[[str, str], Path]


def by_name(path: Path, around: ConfigEnvironment) -> dict[str, UpstreamSpec]:
    found = read_servers(path, around)
    assert not found.problems
    return {spec.name: spec for spec in found.specs}


def test_claude_desktop(write: Write, around: ConfigEnvironment) -> None:
    text = """{"mcpServers": {"files": {"command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"],
      "env": {"DEBUG": "1"}}}, "globalShortcut": "x"}"""
    files = by_name(write("claude_desktop_config.json", text), around)["files"]
    assert (files.transport, files.command) == ("stdio", "npx")
    assert files.args == ("-y", "@modelcontextprotocol/server-filesystem", "/data")
    assert files.env == {"DEBUG": "1"}


def test_claude_code_expands_variables_in_every_place(
    write: Write, around: ConfigEnvironment
) -> None:
    text = """{"mcpServers": {
      "api": {"type": "http", "url": "https://${HOST}/mcp",
              "headers": {"Authorization": "Bearer ${TOKEN}"}},
      "old": {"type": "sse", "url": "${BASE:-https://old.example}/events"},
      "tool": {"type": "stdio", "command": "${BIN:-tool}", "args": ["--key=${TOKEN}"],
               "env": {"MODE": "${MODE:-fast}"}}}}"""
    found = by_name(write(".mcp.json", text), around)
    assert found["api"].url == "https://example.org/mcp"
    assert found["api"].headers == {"Authorization": "Bearer s3cret"}
    assert (found["old"].transport, found["old"].url) == ("sse", "https://old.example/events")
    tool = found["tool"]
    assert (tool.command, tool.args, tool.env) == ("tool", ("--key=s3cret",), {"MODE": "fast"})


def test_claude_json_has_servers_for_all_and_for_the_project(
    write: Write, around: ConfigEnvironment
) -> None:
    value = {
        "numStartups": 7,
        "mcpServers": {"mine": {"command": "a"}, "both": {"command": "wide"}},
        "projects": {
            str(around.project): {
                "mcpServers": {"both": {"command": "narrow"}, "local": {"command": "c"}},
                "disabledMcpServers": ["mine"],
            },
            "/elsewhere": {"mcpServers": {"foreign": {"command": "d"}}},
        },
    }
    found = by_name(write(".claude.json", json.dumps(value)), around)
    assert {name: spec.command for name, spec in found.items()} == {
        "mine": "a",
        "both": "narrow",
        "local": "c",
    }
    assert found["mine"].disabled
    assert not found["both"].disabled


def test_a_claude_json_without_servers_is_no_error(write: Write, around: ConfigEnvironment) -> None:
    assert by_name(write(".claude.json", '{"projects": {"/x": {}}}'), around) == {}


def test_cursor(write: Write, around: ConfigEnvironment) -> None:
    write("project/.cursor/.env", "FROM_FILE=yes\n# note\nTOKEN='quoted $X'\n")
    text = """{"mcpServers": {
      "here": {"command": "python", "args": ["${workspaceFolder}/server.py"],
               "env": {"K": "${env:TOKEN}"}, "envFile": ".env"},
      "there": {"url": "http://localhost:3000/mcp", "headers": {"X": "${env:HOST}"}}}}"""
    found = by_name(write("project/.cursor/mcp.json", text), around)
    assert found["here"].args == (f"{around.project}/server.py",)
    assert found["here"].env == {"FROM_FILE": "yes", "TOKEN": "quoted $X", "K": "s3cret"}
    assert (found["there"].transport, found["there"].headers) == ("http", {"X": "example.org"})


def test_the_words_of_clients_for_logins(write: Write, around: ConfigEnvironment) -> None:
    text = """{"mcpServers": {
      "claude": {"type": "http", "url": "https://c/mcp",
                 "oauth": {"clientId": "c", "callbackPort": 8080, "authServerMetadataUrl": "x"}},
      "gemini": {"httpUrl": "https://g/mcp", "oauth": {"enabled": true, "clientId": "g",
                 "clientSecret": "${TOKEN}", "scopes": ["a", "b"], "tokenUrl": "https://t",
                 "redirectUri": "http://localhost:7777/oauth/callback"}},
      "cursor": {"url": "https://u/mcp", "auth": {"CLIENT_ID": "u", "CLIENT_SECRET": "s",
                 "scopes": ["read"]}},
      "plain": {"url": "https://p/mcp", "auth": "oauth"}}}"""
    found = by_name(write("mcp.json", text), around)
    assert found["claude"].oauth == OAuthOptions(
        client_id="c", redirect="http://localhost:8080/callback"
    )
    assert found["gemini"].oauth == OAuthOptions(
        client_id="g",
        client_secret="s3cret",
        scope="a b",
        redirect="http://localhost:7777/oauth/callback",
    )
    assert found["cursor"].oauth == OAuthOptions(client_id="u", client_secret="s", scope="read")
    assert found["plain"].uses_oauth
    assert "s3cret" in found["gemini"].secrets
    text = """{"mcp": {"on": {"type": "remote", "url": "https://o/mcp", "oauth": {"scope": "x"}},
      "off": {"type": "remote", "url": "https://o/mcp", "oauth": false},
      "own": {"type": "remote", "url": "https://o/mcp", "headers": {"AUTHORIZATION": "x"}}}}"""
    found = by_name(write("opencode.json", text), around)
    assert found["on"].oauth == OAuthOptions(scope="x")
    assert [name for name, spec in found.items() if spec.uses_oauth] == ["on"]


def test_windsurf(write: Write, around: ConfigEnvironment) -> None:
    write("token.txt", "from file\n")
    text = """{"mcpServers": {"w": {"serverUrl": "https://w.example/mcp",
      "headers": {"A": "${env:TOKEN}", "B": "${file:token.txt}"},
      "disabledTools": ["delete_*"]}, "off": {"command": "x", "disabled": true}}}"""
    found = by_name(write("mcp_config.json", text), around)
    assert found["w"].url == "https://w.example/mcp"
    assert found["w"].headers == {"A": "s3cret", "B": "from file"}
    assert not found["w"].shows("delete_all")
    assert found["off"].disabled


def test_gemini_cli(write: Write, around: ConfigEnvironment) -> None:
    text = """{"theme": "x", "mcp": {"excluded": ["third"]}, "mcpServers": {
      "first": {"command": "a", "env": {"K": "$TOKEN", "P": "pa$word"}, "cwd": "./srv",
                "timeout": 30000, "trust": true, "includeTools": ["a", "b"]},
      "second": {"httpUrl": "https://h/mcp"},
      "third": {"url": "https://h/sse", "excludeTools": ["x"]}}}"""
    found = by_name(write("project/.gemini/settings.json", text), around)
    first = found["first"]
    assert first.env == {"K": "s3cret", "P": "pa$word"}
    assert (first.timeout, first.include, first.trust) == (30.0, ("a", "b"), None)
    assert first.cwd == str(around.project / "./srv")
    assert found["second"].transport == "http"
    assert (found["third"].transport, found["third"].disabled) == ("sse", True)


def test_cline(write: Write, around: ConfigEnvironment) -> None:
    text = """{"mcpServers": {
      "a": {"command": "x", "timeout": 45, "autoApprove": ["t"], "disabled": false},
      "b": {"url": "https://h/events", "transportType": "http"},
      "c": {"url": "https://h/old"},
      "d": {"url": "https://h/mcp", "type": "streamableHttp"}}}"""
    found = by_name(write("cline_mcp_settings.json", text), around)
    assert found["a"].timeout == 45
    assert [found[n].transport for n in "bcd"] == ["http", "sse", "http"]


def test_vs_code(write: Write, around: ConfigEnvironment) -> None:
    text = """{
      // asked once
      "inputs": [{"type": "promptString", "id": "port", "description": "Port", "default": "80"}],
      "servers": {
        "io": {"type": "stdio", "command": "node", "args": ["s.js", "${input:port}"],
               "env": {"N": 5, "GONE": null, "FLAG": true}, "dev": {"watch": "x"}},
        "net": {"type": "http", "url": "https://h/mcp"},
      }}"""
    expected = {"N": "5", "FLAG": "true"}
    found = by_name(write(".vscode/mcp.json", text), around)
    assert (found["io"].args, found["io"].env) == (("s.js", "80"), expected)
    nested = by_name(write("settings.json", '{"editor.x": 1, "mcp": ' + text + "}"), around)
    assert {n: s.args for n, s in nested.items()} == {n: s.args for n, s in found.items()}


def test_vs_code_inputs_without_a_value_say_which_variable_to_set(
    write: Write, around: ConfigEnvironment
) -> None:
    text = """{"inputs": [{"id": "gh-key", "type": "promptString", "description": "GitHub key"}],
      "servers": {"a": {"command": "x",
        "env": {"K": "${input:gh-key}"}}, "b": {"command": "y"}}}"""
    found = read_servers(write(".vscode/mcp.json", text), around)
    assert [s.name for s in found.specs] == ["b"]
    (problem,) = found.problems
    assert "mcp.json:3: servers.a.env.K: ${input:gh-key} (GitHub key)" in problem.message
    assert problem.details["variable"] == "PEGBOARD_INPUT_GH_KEY"


def test_zed(write: Write, around: ConfigEnvironment) -> None:
    text = """{"theme": "One", "context_servers": {
      "new": {"source": "custom", "command": "x", "args": ["$HOME", "${TOKEN}"], "timeout": 90},
      "old": {"command": {"path": "y", "args": ["1"], "env": {"A": "b"}}, "settings": {}},
      "web": {"url": "https://h/mcp", "headers": {"A": "b"}, "enabled": false},
      "ext": {"source": "extension", "settings": {"k": "v"}}}}"""
    path = write("zed/settings.json", text)
    found = by_name(path, around)
    assert found["new"].args == ("$HOME", "${TOKEN}")  # Zed expands nothing
    assert found["new"].timeout == 90
    assert (found["old"].command, found["old"].args, found["old"].env) == ("y", ("1",), {"A": "b"})
    assert found["web"].disabled
    assert read_servers(path, around).notes == (
        f"{path}: ext is left out: it is run by a Zed extension.",
    )


def test_opencode(write: Write, around: ConfigEnvironment) -> None:
    text = """{"$schema": "https://opencode.ai/config.json", "mcp": {
      "loc": {"type": "local", "command": ["bun", "x", "my-mcp"], "enabled": true,
              "environment": {"K": "{env:TOKEN}"}, "timeout": 5000},
      "rem": {"type": "remote", "url": "https://h/mcp", "headers": {"A": "Bearer {env:TOKEN}"}},
      "off": {"enabled": false}}}"""
    path = write("opencode.jsonc", text)
    found = by_name(path, around)
    loc = found["loc"]
    assert (loc.command, loc.args, loc.env) == ("bun", ("x", "my-mcp"), {"K": "s3cret"})
    assert (loc.start_timeout, loc.timeout) == (5.0, 60.0)
    assert (found["rem"].transport, found["rem"].headers) == ("http", {"A": "Bearer s3cret"})
    assert "off is left out: it is disabled" in read_servers(path, around).notes[0]


def test_goose(write: Write, around: ConfigEnvironment) -> None:
    text = """
GOOSE_MODEL: some-model
extensions:
  developer:
    type: builtin
    name: developer
    enabled: true
  files:
    type: stdio
    name: files
    cmd: npx
    args: ["-y", "server"]
    envs: {LEVEL: 3}
    env_keys: [TOKEN]
    timeout: 300
    enabled: true
    available_tools: []
  web:
    type: streamable_http
    name: web
    uri: https://h/mcp
    headers: {Authorization: "Bearer $TOKEN"}
    enabled: false
"""
    found = by_name(write("config.yaml", text), around)
    files = found["files"]
    assert (files.command, files.args) == ("npx", ("-y", "server"))
    assert files.env == {"LEVEL": "3", "TOKEN": "s3cret"}
    assert (files.timeout, files.include) == (300, ())
    assert (found["web"].headers, found["web"].disabled) == (
        {"Authorization": "Bearer s3cret"},
        True,
    )
    assert "developer" not in found


def test_codex(write: Write, around: ConfigEnvironment) -> None:
    text = """
model = "m"
[mcp_servers.docs]
command = "npx"
args = ["-y", "docs", "${TOKEN}"]
env_vars = ["HOST", "UNSET"]
startup_timeout_sec = 20
tool_timeout_sec = 45.5
enabled_tools = ["search"]
[mcp_servers.docs.env]
A = "b"
[mcp_servers.web]
url = "https://h/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { X = "y" }
env_http_headers = { Z = "HOST" }
enabled = false
[mcp_servers.slow]
command = "slow"
startup_timeout_ms = 1500
"""
    found = by_name(write("config.toml", text), around)
    docs = found["docs"]
    assert docs.args == ("-y", "docs", "${TOKEN}")  # Codex expands nothing
    assert docs.env == {"A": "b", "HOST": "example.org"}
    assert (docs.start_timeout, docs.timeout, docs.include) == (20, 45.5, ("search",))
    assert found["web"].headers == {"X": "y", "Authorization": "Bearer s3cret", "Z": "example.org"}
    assert found["web"].disabled
    assert found["slow"].start_timeout == 1.5


def test_codex_token_variable_that_is_not_set_is_reported(
    write: Write, around: ConfigEnvironment
) -> None:
    text = '[mcp_servers.w]\nurl = "https://h"\nbearer_token_env_var = "NOPE"\n'
    (problem,) = read_servers(write("config.toml", text), around).problems
    assert "config.toml:3: mcp_servers.w.bearer_token_env_var: the variable NOPE" in problem.message


def test_our_own_keys_stand_beside_the_clients(write: Write, around: ConfigEnvironment) -> None:
    text = """{"mcpServers": {"a": {"command": "x", "include": ["get_*"], "exclude": ["get_x"],
      "category": "c", "prefix": "p", "pins": ["get_a"], "mode": "eager", "isolation": "session",
      "stateless": true, "idleStop": 5, "startTimeout": 7}}}"""
    a = by_name(write("mcp.json", text), around)["a"]
    assert (a.category, a.prefix, a.pins, a.mode) == ("c", "p", ("get_a",), "eager")
    assert (a.isolation, a.stateless, a.idle_stop, a.start_timeout) == ("session", True, 5, 7)
    assert [a.shows(n) for n in ("get_a", "get_x", "set_a")] == [True, False, False]


@pytest.mark.parametrize(
    ("entry", "line", "says"),
    [
        ('{"command": "x", "env": {"K": "${NOPE}"}}', 3, "env.K: the variable NOPE is not set"),
        ('{"comand": "x"}', 3, "comand: did you mean 'command'?"),
        ("{}", 3, "needs a `command` to start or a `url` to reach"),
        ('{"command": "x",\n"args": "y"}', 4, "args: this should be a list; this is text"),
        ('{"command": "x",\n"timeout": -5}', 4, "timeout: this should be greater than 0"),
        ('{"command": "x", "url": "https://h"}', 3, "a `command` or a `url`, not both"),
        ('{"url": "ftp://h"}', 3, "a `url` must start with `http://`"),
        ('{"url": "https://h", "type": "websocket"}', 3, "type: this should be 'stdio', 'http'"),
        ('{"command": "x", "type": "http"}', 3, "a `command` cannot use the transport http"),
        ('{"command": "x", "envFile": "no.env"}', 3, "there is no file"),
        ('"npx server"', 3, "a table is expected for a server, not str"),
    ],
)
def test_one_bad_server_is_reported_and_the_others_stay(
    entry: str, line: int, says: str, write: Write, around: ConfigEnvironment
) -> None:
    text = '{"mcpServers": {\n"good": {"command": "g"},\n"bad": ' + entry + "}}"
    path = write("mcp.json", text)
    found = read_servers(path, around)
    assert [s.name for s in found.specs] == ["good"]
    (problem,) = found.problems
    assert problem.message.startswith(f"{path}:{line}: mcpServers.bad")
    assert says in problem.message
    assert problem.details["file"] == str(path)


def test_two_servers_of_one_name_are_reported_with_both_lines(
    write: Write, around: ConfigEnvironment
) -> None:
    text = """{"mcpServers": {
      "a": {"command": "one"},
      "b": {"command": "x"},
      "a": {"command": "two"}}}"""
    found = read_servers(write("mcp.json", text), around)
    assert {s.name: s.command for s in found.specs} == {"a": "two", "b": "x"}
    assert "mcp.json:4: mcpServers.a: two servers have this name (also line 2)" in str(
        found.problems[0]
    )


def test_two_servers_of_one_name_in_a_list_are_reported(
    write: Write, around: ConfigEnvironment
) -> None:
    text = """{"mcpServers": [
      {"name": "a", "command": "one"},
      {"name": "b", "command": "x"},
      {"name": "a", "command": "two"}]}"""
    found = read_servers(write("mcp.json", text), around)
    assert {s.name: s.command for s in found.specs} == {"a": "two", "b": "x"}
    (problem,) = found.problems
    assert "two servers have this name" in str(problem)
    assert problem.details["server"] == "a"


def test_an_unset_variable_of_a_switched_off_server_bothers_nobody(
    write: Write, around: ConfigEnvironment
) -> None:
    text = '{"mcpServers": {"a": {"command": "${NOPE}", "disabled": true}}}'
    found = read_servers(write("mcp.json", text), around)
    assert (found.specs, found.problems) == ((), ())
    assert "it is disabled" in found.notes[0]


def test_a_file_without_servers_says_what_was_looked_for(
    write: Write, around: ConfigEnvironment
) -> None:
    with pytest.raises(ConfigError, match="none of mcpServers, servers"):
        read_servers(write("mcp.json", '{"mcpservers": {}}'), around)


def test_servers_of_lazy_mcp(write: Write, around: ConfigEnvironment) -> None:
    text = """{"servers": [
      {"name": "browser", "description": "A browser", "command": ["npx", "-y", "browser-mcp"],
       "requestTimeout": 45000},
      {"name": "remote", "description": "Far away", "url": "https://api.example/mcp",
       "headers": {"Authorization": "Bearer ${TOKEN}"}}]}"""
    found = by_name(write("servers.json", text), around)
    assert (found["browser"].command, found["browser"].args) == ("npx", ("-y", "browser-mcp"))
    assert found["browser"].timeout == 45
    assert found["remote"].headers == {"Authorization": "Bearer s3cret"}


def test_servers_of_mcpproxy(write: Write, around: ConfigEnvironment) -> None:
    text = """{"listen": "127.0.0.1:8080", "mcpServers": [
      {"name": "here", "command": "python", "args": ["-m", "x"], "protocol": "stdio"},
      {"name": "there", "url": "http://localhost:3001", "protocol": "http", "enabled": true},
      {"name": "any", "url": "http://localhost:3002", "protocol": "auto"},
      {"name": "off", "command": "y", "protocol": "stdio", "enabled": false}]}"""
    found = by_name(write("mcp_config.json", text), around)
    assert (found["here"].transport, found["here"].command) == ("stdio", "python")
    assert (found["there"].transport, found["there"].url) == ("http", "http://localhost:3001")
    assert found["any"].url == "http://localhost:3002"
    assert found["off"].disabled


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('{"command": "x"}', "mcp.json:2: servers.0: a server needs a name."),
        ('"x"', "mcp.json:2: servers.0: a table is expected for a server, not str."),
        ('{"name": "a", "comand": "x"}', "mcp.json:2: servers.0.comand: did you mean 'command'?"),
    ],
)
def test_a_server_in_a_list_that_is_wrong_leaves_the_others_alone(
    entry: str, says: str, write: Write, around: ConfigEnvironment
) -> None:
    text = f'{{"servers": [\n{entry},\n{{"name": "good", "command": "x"}}]}}'
    found = read_servers(write("mcp.json", text), around)
    assert [spec.name for spec in found.specs] == ["good"]
    assert says in found.problems[0].message


def test_a_table_that_is_none_is_reported(write: Write, around: ConfigEnvironment) -> None:
    (problem,) = read_servers(write("mcp.json", '{"mcpServers": []}'), around).problems
    assert "mcp.json:1: mcpServers: a table of servers is expected" in problem.message


@pytest.mark.parametrize(
    ("command", "args", "ours"),
    [
        ("pegboard", ["serve"], True),
        ("/opt/bin/pegboard", [], True),
        ("C:\\bin\\pegboard.exe", [], True),
        ("uvx", ["pegboard@latest", "serve"], True),
        ("python3.12", ["-m", "pegboard", "serve"], True),
        ("npx", ["pegboard"], False),
        ("python", ["my_pegboard.py"], False),
    ],
)
def test_pegboard_never_stands_behind_itself(command: str, args: list[str], ours: bool) -> None:
    assert runs_pegboard({"command": command, "args": args}) is ours


def test_secrets_stay_out_of_repr_and_label(write: Write, around: ConfigEnvironment) -> None:
    text = """{"mcpServers": {
      "a": {"command": "x", "args": ["--key", "${TOKEN}"], "env": {"K": "${TOKEN}"}},
      "b": {"url": "https://me:${TOKEN}@h:8/mcp?key=${TOKEN}", "headers": {"K": "${TOKEN}"}}}}"""
    for spec in by_name(write("mcp.json", text), around).values():
        assert "s3cret" not in repr(spec)
        assert "s3cret" not in spec.label


def test_a_wrong_value_is_not_shown_since_it_may_be_a_secret(
    write: Write, around: ConfigEnvironment
) -> None:
    text = '{"mcpServers": {"a": {"command": "x", "env": {"K": ["s3cret"]}}}}'
    (problem,) = read_servers(write("mcp.json", text), around).problems
    assert "mcpServers.a.env.K: this should be text; this is a list" in problem.message
    assert "s3cret" not in problem.message
