"""What we keep of an installation, so that it can be undone: one folder per client's file.

pegboard.toml    the configuration that the client's entry serves; a person may add to it
<servers>        the servers that were taken over, as they were written, readable by the owner alone
before           the client's file as it was
installed.json   digests of what was written, to know whether somebody has changed it since
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pegboard.config.documents import located_error
from pegboard.core.json import JsonObject
from pegboard.install.clients import Client, Machine
from pegboard.install.files import digest

VERSION = 1


@dataclass(frozen=True, slots=True)
class Record:
    """What was done to a client's file, so that it can be undone: digests of what was written."""

    client: str
    file: str
    mode: str
    before: str | None
    after: str | None
    kept: str | None
    settings: str | None
    entry: JsonObject = field(repr=False)
    made: tuple[str, ...] = ()
    """Folders that were made for the client's file."""
    version: int = VERSION

    def text(self) -> str:
        return json.dumps(asdict(self), indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True)
class Ours:
    """The folder in which we keep what belongs to one installation."""

    folder: Path
    kept: Path

    @property
    def record(self) -> Path:
        return self.folder / "installed.json"

    @property
    def backup(self) -> Path:
        return self.folder / "before"

    @property
    def settings(self) -> Path:
        """The configuration that the client's entry serves."""
        return self.folder / "pegboard.toml"


def ours_of(client: Client, machine: Machine, path: Path) -> Ours:
    """Where we keep what belongs to the client's file at `path`."""
    is_usual = path in machine.files_of(client)
    mark = "" if is_usual else f"-{(digest(str(path.absolute()).encode()) or '')[:8]}"
    folder = machine.ours / f"{client.key}{mark}"
    return Ours(folder, folder / (client.kept_as or path.name))


def read_record(ours: Ours) -> Record | None:
    """What was done before; `None` when nothing was.

    Raises:
        ConfigError: It cannot be read, or another version wrote it.
    """
    try:
        value: dict[str, Any] = json.loads(ours.record.read_text("utf-8"))
        if value.get("version") != VERSION:
            raise located_error(
                ours.record, "another version of Pegboard wrote this: use that one."
            )
        value["made"] = tuple(value["made"])
        return Record(**value)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as exc:
        raise located_error(
            ours.record, f"this is damaged; what was there before is in {ours.backup}."
        ) from exc
