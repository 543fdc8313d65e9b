"""Variables in configuration files: `${VAR}` and the other syntaxes of clients.

| syntax | value | clients |
|---|---|---|
| `${VAR}`, `${VAR:-default}` | environment | Claude Code, Gemini CLI, Goose, Pegboard |
| `${env:VAR}` | environment | Cursor, VS Code, Windsurf |
| `$VAR` | environment; unchanged if it is not set | Gemini CLI, Goose |
| `{env:VAR}`, `{file:path}` | environment, text of a file | opencode |
| `${file:path}` | text of a file | Windsurf |
| `${keyring:service/user}` | the operating system's keyring | Pegboard |
| `${input:id}` | VS Code asks its user; here `PEGBOARD_INPUT_ID` or the default | VS Code |
| `${workspaceFolder}`, `${userHome}`, ... | folders | Cursor, VS Code |

`$${VAR}` is an escape for `${VAR}`. Everything that a value depends on is an argument; nothing here
reads the real environment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from pegboard.config.documents import KeyPath
from pegboard.core.json import Json, JsonObject
from pegboard.credentials import read_keyring

VariableSyntax: TypeAlias = Literal["none", "dollar", "dollar-bare", "braces"]
"""Which references the files of a client may contain."""

_DOLLAR = re.compile(r"(\$?)\$\{([^{}]*)\}")
_BARE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_BRACES = re.compile(r"\{(env|file):([^{}]+)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class UnresolvedVariable(Exception):
    """A reference without a value; the message says which one, and what to do."""

    def __init__(self, message: str, variable: str) -> None:
        super().__init__(message)
        self.variable = variable


@dataclass(frozen=True, slots=True)
class Variables:
    """The values of references in one file."""

    env: Mapping[str, str] = field(repr=False)
    folder: Path
    """The folder of the file, where relative paths start."""
    workspace: Path
    home: Path
    inputs: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])

    def expand(self, text: str, spelling: VariableSyntax) -> str:
        """The text with its references replaced.

        Raises:
            UnresolvedVariable: A reference has no value.
        """
        if spelling == "none" or ("$" not in text and "{" not in text):
            return text
        if spelling == "braces":
            return _BRACES.sub(lambda m: self._prefixed(m[1], m[2], m[0]), text)
        if spelling == "dollar-bare":
            # The braces of `${VAR}` are no name: these references are left for the line below.
            text = _BARE.sub(lambda m: self.env.get(m[1], m[0]), text)
        return _DOLLAR.sub(self._dollar, text)

    def _dollar(self, match: re.Match[str]) -> str:
        if match[1]:
            return match[0][1:]  # the escape `$${...}`
        body, reference = match[2], match[0]
        prefix, colon, rest = body.partition(":")
        folders = {
            "workspaceFolder": str(self.workspace),
            "workspaceFolderBasename": self.workspace.name,
            "userHome": str(self.home),
            # VS Code has two names for it.
            "pathSeparator": "/",
            "/": "/",
        }
        if body in folders:
            return folders[body]
        # `${VAR:-default}` has a colon too, and no prefix.
        if colon and not rest.startswith("-"):
            return self._prefixed(prefix, rest, reference)
        return self._variable(body, reference)

    def _prefixed(self, prefix: str, rest: str, reference: str) -> str:
        match prefix:
            case "env":
                return self._variable(rest, reference)
            case "file":
                name = Path(self.home / rest[2:] if rest.startswith("~/") else rest)
                path = self.folder / name  # an absolute path replaces the folder
                try:
                    return path.read_text(encoding="utf-8").strip()
                except (OSError, UnicodeDecodeError) as exc:
                    message = f"{reference} cannot be read: {path}."
                    raise UnresolvedVariable(message, reference) from exc
            case "input":
                variable = "PEGBOARD_INPUT_" + re.sub(r"[^A-Za-z0-9]", "_", rest).upper()
                if variable in self.env:
                    return self.env[variable]
                known = self.inputs.get(rest, {})
                if isinstance(known.get("default"), str):
                    return known["default"]
                description = f" ({known['description']})" if known.get("description") else ""
                raise UnresolvedVariable(
                    f"${{input:{rest}}}{description} is entered by the user of VS Code. Set "
                    f"{variable} in the environment of Pegboard.",
                    variable,
                )
            case "keyring":
                service, slash, user = rest.partition("/")
                if not slash:
                    message = f"{reference}: write it as ${{keyring:service/user}}."
                    raise UnresolvedVariable(message, reference)
                if (value := read_keyring(service, user)) is None:
                    message = f"{reference} is not in the keyring of this machine."
                    raise UnresolvedVariable(message, reference)
                return value
            case _:
                raise UnresolvedVariable(
                    f"{reference} can only be resolved by its own client.", reference
                )

    def _variable(self, body: str, reference: str) -> str:
        name, has_default, default = body.partition(":-")
        if not _NAME.fullmatch(name):
            return reference  # the syntax of a shell, such as `${VAR%x}`, meant for the shell
        value = self.env.get(name)
        # As in a shell: `:-` also replaces an empty value.
        if value is None or (has_default and not value):
            if not has_default:
                raise UnresolvedVariable(
                    f"the variable {name} is not set. Set it in the environment, or write "
                    f"${{{name}:-default}}.",
                    name,
                )
            return default
        return value


ReportUnresolved: TypeAlias = Callable[[KeyPath, UnresolvedVariable], None]


def expand_variables(
    value: Json,
    variables: Variables,
    spelling: VariableSyntax,
    report: ReportUnresolved,
    key: KeyPath = (),
) -> Json:
    """A JSON value with every string in it expanded; `report` is called for missing values."""
    if isinstance(value, str):
        try:
            return variables.expand(value, spelling)
        except UnresolvedVariable as exc:
            report(key, exc)
            return value
    if isinstance(value, dict):
        return {
            k: expand_variables(v, variables, spelling, report, (*key, k)) for k, v in value.items()
        }
    if isinstance(value, list):
        return [
            expand_variables(v, variables, spelling, report, (*key, i)) for i, v in enumerate(value)
        ]
    return value
