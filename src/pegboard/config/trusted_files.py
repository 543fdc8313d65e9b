"""Configuration files in working folders, and which of them the user has trusted.

A configuration names commands, and opening one runs them. So a `pegboard.toml` that merely lies in
the current folder, perhaps in a repository that was just cloned, is used only after the user has
agreed to it. They agree to a path and its content: if the file changes, they are asked again.

The content is that of the file and of all files it reads commands and environment variables from:
`import`, `env_file`, `${file:...}`. A program in the folder that a command runs is not part of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard.config.documents import Document, located_error, read_document
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.config.variables import UnresolvedVariable, Variables
from pegboard.core.json import Json
from pegboard.errors import ConfigError
from pegboard.private_files import lock_file, make_private_folder, replace_file

_ENV_FILES = ("env_file", "envFile")
_FILE_REFERENCE = re.compile(r"\{file:([^{}]+)\}")


@dataclass(frozen=True, slots=True)
class TrustedFile:
    """A file and its content as the user has seen them."""

    path: Path
    digest: str
    environment: ConfigEnvironment = field(repr=False)

    @classmethod
    def read(cls, path: Path, environment: ConfigEnvironment) -> TrustedFile:
        """The file as it is now."""
        whole = path.resolve()
        return cls(whole, _digest(whole, environment), environment)

    def require_unchanged(self) -> None:
        """Check that the content is still the same.

        Raises:
            ConfigError: It has changed since.
        """
        if _digest(self.path, self.environment) != self.digest:
            raise located_error(
                self.path, "it has changed since you trusted it: start Pegboard again to review it."
            )


@dataclass(frozen=True, slots=True)
class TrustDecisions:
    """The decisions of the user, in a file that only the user can read."""

    path: Path

    def find(self, file: TrustedFile) -> bool | None:
        """What the user decided about exactly this content; `None` if there was no question yet."""
        decision = self._read().get(str(file.path))
        if not isinstance(decision, dict) or decision.get("digest") != file.digest:
            return None
        return decision.get("trusted") is True

    def save(self, file: TrustedFile, *, trusted: bool) -> None:
        """Save a decision, in place of one about an earlier content.

        Raises:
            ConfigError: It cannot be written.
        """
        try:
            make_private_folder(self.path.parent)
            with lock_file(self.path.with_suffix(".lock")):
                decisions = self._read()
                decisions[str(file.path)] = {"digest": file.digest, "trusted": trusted}
                with replace_file(self.path) as out:
                    out.write(json.dumps(decisions, indent=2).encode())
        except OSError as exc:
            raise located_error(self.path, f"it cannot be written: {exc.strerror or exc}.") from exc

    def _read(self) -> dict[str, Any]:
        try:
            value = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}  # a damaged file trusts nothing: the user is asked again
        return value if isinstance(value, dict) else {}


def _digest(path: Path, environment: ConfigEnvironment) -> str:
    """The SHA-256 of the file and of the files that it reads, with their paths."""
    files, sources = [path], list[Document]()
    # An imported file may import others, so `files` grows until nothing new is imported.
    for file in files:
        if (document := _read(file)) is None:
            continue
        sources.append(document)
        imports: Any = document.value.get("import")
        for name in imports if isinstance(imports, list) else []:
            if isinstance(name, str):
                # Resolved: otherwise `x/../a.toml` that imports itself would have no end.
                # In list order: set order, and so the digest, would differ between processes.
                found = (p.resolve() for p in _locate(name, file, environment))
                files += [p for p in dict.fromkeys(found) if p not in files]
    for source in sources:
        named = [*_env_files(source.value)]
        # In the values and not in the text, where a brace may be written as an escape.
        for text in _strings(source.value):
            named += _FILE_REFERENCE.findall(text)
        for name in named:
            files += _locate(name, source.path, environment)
    sha = hashlib.sha256()
    for part in files:
        try:
            data = part.read_bytes()
        except OSError:
            data = b"missing"
        # With their lengths, so that bytes cannot move from one file to the next unnoticed.
        for piece in (str(part).encode(), data):
            sha.update(len(piece).to_bytes(8, "big") + piece)
    return sha.hexdigest()


def _read(path: Path) -> Document | None:
    try:
        return read_document(path)
    except ConfigError:
        return None  # it is reported when the configuration is loaded


def _env_files(value: Json) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in value.items():
            if key in _ENV_FILES and isinstance(part, str):
                yield part
            else:
                yield from _env_files(part)
    elif isinstance(value, list):
        for part in value:
            yield from _env_files(part)


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def _locate(name: str, source: Path, environment: ConfigEnvironment) -> list[Path]:
    """The file that a name means, in each syntax that a client may use for variables in it."""
    folder = source.parent
    variables = Variables(environment.env, folder, folder, environment.home)
    names = [name]
    with suppress(UnresolvedVariable):  # it is reported when the configuration is loaded
        names = [variables.expand(name, syntax) for syntax in ("dollar", "dollar-bare")]
    return [environment.find(one, folder) for one in dict.fromkeys(names)]
