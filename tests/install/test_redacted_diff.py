"""The diff that `install` shows: no secret in it, and nothing else missing."""

from __future__ import annotations

import json
from pathlib import Path

from pegboard.install.plan import redacted_diff

PATH = Path("/home/ada/.cursor/mcp.json")


def removed(text: str, path: Path = PATH) -> str:
    """The lines that a diff shows as removed."""
    lines = redacted_diff(path, text.encode(), b"{}").splitlines()
    return "\n".join(line[1:] for line in lines if line[:1] == "-" and not line.startswith("---"))


def test_a_short_secret_is_replaced_where_it_is_the_value_and_nowhere_else() -> None:
    text = (
        '{"mcpServers": {"a": {"command": "/opt/1234/run", "args": ["1234"],\n'
        ' "env": {"API_TOKEN": "1234"}}}}'
    )
    assert removed(text) == text.replace('"API_TOKEN": "1234"', '"API_TOKEN": "[redacted]"')


def test_references_to_variables_stay_readable() -> None:
    text = (
        '{"mcpServers": {"a": {"url": "https://x", "headers": {\n'
        '"Authorization": "Bearer ${env:GITHUB_TOKEN}", "X-Token": "$TOKEN"}}}}'
    )
    assert removed(text) == text


def test_a_default_value_of_a_variable_is_a_secret() -> None:
    text = '{"mcpServers": {"a": {"env": {"API_KEY": "${API_KEY:-hunter2hunter2}"}}}}'
    assert "hunter2" not in removed(text)


def test_a_long_secret_is_replaced_everywhere_also_in_comments() -> None:
    secret = "correct-horse-battery"
    text = f'{{\n// was {secret}\n"mcpServers": {{"a": {{"env": {{"PASSWORD": "{secret}"}}}}}}}}'
    assert secret not in removed(text)
    assert "// was [redacted]" in removed(text)


def test_only_the_secret_part_of_an_argument_is_replaced() -> None:
    text = '{"mcpServers": {"a": {"command": "x", "args": ["--token=abcdefgh", "--verbose"]}}}'
    assert '"--token=[redacted]", "--verbose"' in removed(text)


def test_the_result_is_still_json_with_the_same_keys() -> None:
    value = {
        "mcpServers": {
            "a": {"command": "npx", "args": ["-y", "a"], "env": {"KEY": "k", "SECRET": 'a"b\\c'}},
            "b": {"url": "https://user:password1@host/mcp", "headers": {"Cookie": "c=1"}},
        }
    }
    shown = json.loads(removed(json.dumps(value)))
    assert shown["mcpServers"]["a"]["env"] == {"KEY": "k", "SECRET": "[redacted]"}
    assert shown["mcpServers"]["a"]["args"] == ["-y", "a"]
    assert "password1" not in str(shown)


def test_values_without_quotes_in_yaml_are_replaced() -> None:
    text = "extensions:\n  a:\n    cmd: run\n    envs:\n      TOKEN: abc1\n      PORT: abc1\n"
    path = Path("/home/ada/.config/goose/config.yaml")
    shown = removed(text, path)
    assert "TOKEN: [redacted]" in shown
    assert "PORT: abc1" in shown


def test_values_in_single_quotes_in_toml_are_replaced() -> None:
    text = "[mcp_servers.a]\ncommand = 'run'\n[mcp_servers.a.env]\nAPI_TOKEN = 'abc1'\n"
    shown = redacted_diff(Path("/home/ada/.codex/config.toml"), text.encode(), b"")
    assert "-API_TOKEN = '[redacted]'" in shown
