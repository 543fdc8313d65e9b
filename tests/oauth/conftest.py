"""Fixtures shared by the login tests."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import keyring
import pytest
from tests.oauth.file_keyring import FileKeyring
from tests.real_redis import redis_program, redis_server

__all__ = ["redis_program", "redis_server"]


@pytest.fixture
def system_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """The file of a keyring that the `keyring` package uses during a test."""
    path = tmp_path / "keyring.json"
    monkeypatch.setenv("TEST_KEYRING", str(path))
    before = keyring.get_keyring()
    keyring.set_keyring(FileKeyring())
    yield path
    keyring.set_keyring(before)
