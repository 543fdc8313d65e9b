from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pegboard.config.server_entries import ConfigEnvironment

ENV = {"TOKEN": "s3cret", "HOST": "example.org", "EMPTY": ""}


@pytest.fixture
def around(tmp_path: Path) -> ConfigEnvironment:
    """A home and a project of their own, and a small environment."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir()
    project.mkdir()
    return ConfigEnvironment(ENV, home, project)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a text below the temporary folder and gives its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write
