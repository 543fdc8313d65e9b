"""A backend of the `keyring` package that stores secrets in a file, for all processes of a test.

    PYTHON_KEYRING_BACKEND=tests.oauth.file_keyring.FileKeyring   TEST_KEYRING=/tmp/.../keyring.json

A file of the same name that ends in `.locked` locks it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.compat import properties
from keyring.errors import KeyringLocked

BACKEND = f"{__name__}.FileKeyring"


class FileKeyring(KeyringBackend):
    """Secrets in the file that `TEST_KEYRING` names."""

    @properties.classproperty
    def priority(self) -> float:
        """Its rank; other tests of this process must not find it."""
        if os.environ.get("PYTHON_KEYRING_BACKEND") != BACKEND:
            raise RuntimeError("only for processes that name it")
        return 1.0

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service} {username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        entries = {**self._read(), f"{service} {username}": password}
        self._path.write_text(json.dumps(entries))

    def delete_password(self, service: str, username: str) -> None:
        entries = self._read()
        del entries[f"{service} {username}"]
        self._path.write_text(json.dumps(entries))

    @property
    def _path(self) -> Path:
        return Path(os.environ["TEST_KEYRING"])

    def _read(self) -> dict[str, str]:
        if self._path.with_suffix(".locked").exists():
            raise KeyringLocked("the user did not unlock it")
        return json.loads(self._path.read_text()) if self._path.exists() else {}
