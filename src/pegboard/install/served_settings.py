"""The `pegboard.toml` behind a client's entry: what `install` decides, beside the user's own lines.

    import    the servers that were moved, and the user's configuration if a profile is chosen
    mode      how the client sees the tools
    profile   which of the tools it sees

Installing again changes only what was asked for; everything else in the file belongs to the user.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pegboard.config.documents import Document, parse_document, read_document
from pegboard.core.options import check_mode
from pegboard.errors import ConfigError
from pegboard.install.client_entry import NAME
from pegboard.install.client_files import InstallFolder
from pegboard.install.clients import Client


@dataclass(frozen=True, slots=True)
class ServedSettings:
    """The settings of one installation, as they are or as they should become."""

    text: str = field(repr=False)
    is_written: bool
    """Whether the file exists with this text."""
    path: Path
    client: Client

    @classmethod
    def read(cls, folder: InstallFolder, client: Client) -> ServedSettings:
        """The settings of an installation; those of a new one where there is none.

        Raises:
            ConfigError: The file exists and is not valid.
        """
        if folder.settings.exists():
            document = read_document(folder.settings)
            return cls(document.text, True, folder.settings, client)
        name = folder.servers.relative_to(folder.path).as_posix()
        text = (
            f"# The servers behind the `{NAME}` entry of {client.title}, "
            f"written by `pegboard install {client.key}`.\n"
            "# You can add settings here; they are kept when the command runs again.\n"
            f'import = ["{name}"]\n'
        )
        return cls(text, False, folder.settings, client)

    @property
    def mode(self) -> str:
        return str(self._document.value.get("mode", "auto"))

    @property
    def profile(self) -> str | None:
        found = self._document.value.get("profile")
        return found if isinstance(found, str) else None

    def to_write(self) -> bytes | None:
        """The content of the file; `None` if it exists with this content."""
        return None if self.is_written else self.text.encode()

    def with_choice(
        self, mode: str | None, profile: str | None, user_config: Path
    ) -> ServedSettings:
        """The settings with another mode and profile; what is `None` stays.

        Raises:
            ConfigError: There is no such mode or profile.
        """
        value = self._document.value
        if mode is not None or "mode" not in value:
            self = self._set("mode", check_mode(mode or self.client.mode))
        if profile is None:
            return self
        imports = value.get("import")
        names = [str(name) for name in imports] if isinstance(imports, list) else []
        if profile not in _profiles(self._document):
            if not user_config.is_file() or profile not in _profiles(read_document(user_config)):
                raise ConfigError(
                    f"There is no profile {profile!r}: define [profiles.{profile}] in "
                    f"{user_config}.",
                    profile=profile,
                )
            # The profile and the servers it names are defined there.
            if str(user_config) not in names:
                self = self._set("import", [*names, str(user_config)])
        return self._set("profile", profile)

    def _set(self, key: str, value: Any) -> ServedSettings:
        import tomlkit

        document: Any = tomlkit.parse(self.text)
        if document.get(key) == value:
            return self
        # After `import`, so that it does not become part of a table at the end of the file.
        if key in document or not any(isinstance(v, dict) for v in document.values()):
            document[key] = value
            text = tomlkit.dumps(document)
        else:
            line = tomlkit.document()
            line[key] = value
            text = tomlkit.dumps(line) + self.text
        return replace(self, text=text, is_written=False)

    @property
    def _document(self) -> Document:
        return parse_document(self.text, self.path)


def _profiles(document: Document) -> dict[str, Any]:
    found = document.value.get("profiles")
    return found if isinstance(found, dict) else {}
