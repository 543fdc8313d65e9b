"""What the reference says of configuration is what happens."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pegboard.config import Surroundings, load
from pegboard.errors import ConfigError

Write = Callable[[str, str], Path]
PAGE = (Path(__file__).parents[2] / "docs/reference/configuration.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    assert found
    return found[1]


def test_the_example_works(write: Write, around: Surroundings) -> None:
    write("home/.cursor/mcp.json", '{"mcpServers": {"github": {"command": "gh"}}}')
    configuration = load(write("pegboard.toml", block("toml")), around)
    assert configuration.problems == ()
    github, notes = configuration.upstreams
    assert (github.exclude, github.timeout) == (("delete_*",), 20)
    assert (notes.args[-1], notes.idle_stop) == ("/tmp/notes", 60)
    assert configuration.sources[0].base_url == "https://shop.example/api"
    assert configuration.settings.pins == ("github.create_issue",)


def test_the_errors_read_as_shown(write: Write, around: Surroundings) -> None:
    unset, unknown = (line.partition(": ")[2] for line in block("text").splitlines())
    around = replace(around, env={})
    text = '{"mcpServers": {"github": {"command": "x", "env": {"TOKEN": "${GITHUB_TOKEN}"}}}}'
    (problem,) = load(write("mcp.json", text), around).problems
    assert problem.message.partition(": ")[2] == unset
    with pytest.raises(ConfigError) as caught:
        load(write("pegboard.toml", "mdoe = 1"), around)
    assert caught.value.message.partition(": ")[2] == unknown
