"""The how-to pages of a company's gateway: every block of settings is one that can be read."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.config.loader import load_configuration
from pegboard.config.server_entries import ConfigEnvironment

Write = Callable[[str, str], Path]
PAGES = Path(__file__).parents[2] / "docs" / "how-to"
BLOCKS = [
    pytest.param(block, id=f"{name}-{number}")
    for name in ("permissions", "trust", "observability")
    for number, block in enumerate(
        re.findall(r"```toml\n(.*?)```", (PAGES / f"{name}.md").read_text(), re.DOTALL)
    )
]


@pytest.mark.parametrize("block", BLOCKS)
def test_settings_of_the_how_to_pages_are_understood(
    block: str, write: Write, around: ConfigEnvironment
) -> None:
    configuration = load_configuration(write("pegboard.toml", block), around)
    assert configuration.problems == ()


def test_rules_and_limits_become_records(write: Write, around: ConfigEnvironment) -> None:
    text = (
        '[permissions]\ndefault = "deny"\n[[permissions.rules]]\ngroups = ["a"]\nrisks = ["read"]\n'
        "[[limits]]\ncalls = 5\nconcurrent = 2\n"
    )
    settings = load_configuration(write("pegboard.toml", text), around).settings
    assert settings.permissions.default == "deny"
    assert settings.permissions.rules[0].groups == ("a",)
    assert (settings.limits[0].calls, settings.limits[0].concurrent) == (5, 2)
