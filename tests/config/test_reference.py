"""What the reference says of configuration is what happens."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.config.loader import load_configuration
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.errors import ConfigError

Write = Callable[[str, str], Path]
PAGE = (Path(__file__).parents[2] / "docs/reference/configuration.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_works(write: Write, around: ConfigEnvironment) -> None:
    write("home/.cursor/mcp.json", '{"mcpServers": {"github": {"command": "gh"}}}')
    configuration = load_configuration(write("pegboard.toml", block("toml")), around)
    assert configuration.problems == ()
    github, notes = configuration.upstreams
    assert (github.exclude, github.timeout) == (("delete_*",), 20)
    assert (notes.args[-1], notes.idle_stop) == ("/tmp/notes", 60)
    assert configuration.sources[0].base_url == "https://shop.example/api"
    assert configuration.settings.pins == ("github.create_issue",)


def test_the_errors_read_as_shown(write: Write, around: ConfigEnvironment) -> None:
    unset, unknown = (line.partition(": ")[2] for line in block("text").splitlines())
    around = replace(around, env={})
    text = '{"mcpServers": {"github": {"command": "x", "env": {"TOKEN": "${GITHUB_TOKEN}"}}}}'
    (problem,) = load_configuration(write("mcp.json", text), around).problems
    assert problem.message.partition(": ")[2] == unset
    with pytest.raises(ConfigError) as caught:
        load_configuration(write("pegboard.toml", "mdoe = 1"), around)
    assert caught.value.message.partition(": ")[2] == unknown
