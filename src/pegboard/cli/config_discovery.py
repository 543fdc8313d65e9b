"""Which configuration a command uses when none is named with `--config`.

    ./pegboard.toml                      if the user has trusted it: path and content
    pegboard.toml in the user's folder   such as ~/.config/pegboard/pegboard.toml
    the clients on this machine          all their servers, each once

A `pegboard.toml` in the current folder may come with a cloned repository, and its servers are
commands. So the user is asked once, and never without a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pegboard.cli.output import abbreviate_home, err, line, print_warning
from pegboard.config.documents import read_document
from pegboard.config.loader import PROFILE_VARIABLE
from pegboard.config.server_entries import ConfigEnvironment
from pegboard.config.trusted_files import TrustDecisions, TrustedFile
from pegboard.core.json import compact
from pegboard.errors import ConfigError
from pegboard.install.clients import Machine, this_machine

if TYPE_CHECKING:
    from pegboard.gateway.config_source import ConfigSource
    from pegboard.install.client_status import ClientStatus

LOCAL_FILE = "pegboard.toml"


def find_source(config: Path | None, **settings: Any) -> ConfigSource:
    """The configuration that a command names, or the one that is found without it.

    Raises:
        ConfigError: There is none on this machine, or a setting does not exist.
    """
    from pegboard.gateway.config_source import ConfigSource

    if config is not None:
        return ConfigSource.from_path(config, **settings)
    machine = this_machine()
    if (trusted := _trusted_local_file(machine)) is not None:
        _report(f"the configuration {abbreviate_home(str(trusted.path))}")
        return ConfigSource.from_path(trusted.path, trust=trusted, **settings)
    if machine.user_config.is_file():
        _report(f"the configuration {abbreviate_home(str(machine.user_config))}")
        return ConfigSource.from_path(machine.user_config, **settings)
    from pegboard.install.client_status import inspect_clients

    found = [status for status in inspect_clients(machine) if status.servers]
    if not found:
        raise ConfigError(
            "No configuration was found: there is no "
            f"{abbreviate_home(str(machine.user_config))}, and no MCP client on this machine has "
            "servers. Pass --config FILE, or see `pegboard clients`."
        )
    titles = list(dict.fromkeys(status.client.title for status in found))
    _report(f"the servers of {' and '.join(filter(None, [', '.join(titles[:-1]), titles[-1]]))}")
    files = [file for status in found for file in status.server_files]
    # As if the user's own file existed and imported them.
    return ConfigSource.from_path(machine.user_config, text=_import_files(files), **settings)


def list_sources() -> list[ConfigSource]:
    """Every configuration of this user, for a command about one server of any of them.

    These are the ones from `find_source` and those that `pegboard install` created for clients.
    """
    from pegboard.gateway.config_source import ConfigSource
    from pegboard.install.client_status import inspect_clients

    machine = this_machine()
    trusted = _trusted_local_file(machine)
    sources = [ConfigSource.from_path(trusted.path, trust=trusted)] if trusted is not None else []
    installed = sorted(machine.install_root.glob("*/pegboard.toml"))
    of_clients = [status.path for status in inspect_clients(machine) if status.direct]
    paths = (machine.user_config, *installed, *of_clients)
    return sources + [ConfigSource.from_path(path) for path in paths if path.is_file()]


def has_configuration() -> bool:
    """Whether there is a configuration of the user, so that the clients' files are not needed."""
    machine = this_machine()
    return machine.user_config.is_file() or _trusted_local_file(machine) is not None


def client_source(status: ClientStatus, *, profile: str | None = None) -> ConfigSource:
    """All servers of one client, or one profile of theirs and the user's own configuration.

    It is never written.
    """
    from pegboard.gateway.config_source import ConfigSource

    # The whole client, whatever profile the user works with otherwise.
    environ = {name: value for name, value in os.environ.items() if name != PROFILE_VARIABLE}
    files = status.server_files
    text = _import_files(files)
    if profile is not None:
        text = _import_files([*files, this_machine().user_config])
        text += f"profile = {compact(profile)}\n"
    return ConfigSource.from_path(status.folder.settings, environ=environ, text=text)


def installed_source(status: ClientStatus) -> ConfigSource:
    """What an installed Pegboard serves to a client, with its profile."""
    from pegboard.gateway.config_source import ConfigSource

    environ = {name: value for name, value in os.environ.items() if name != PROFILE_VARIABLE}
    return ConfigSource.from_path(status.folder.settings, environ=environ)


def _import_files(files: Sequence[Path]) -> str:
    """The text of a configuration that imports the servers of these files."""
    return f"import = {compact([str(file) for file in files])}\n"  # the same list in JSON and TOML


def _report(what: str) -> None:
    err.paragraph(line((f"Using {what}.", "dim")))


# --- ./pegboard.toml ------------------------------------------------------------------------------


def _trusted_local_file(machine: Machine) -> TrustedFile | None:
    """The `pegboard.toml` of the current folder, if the user trusts what is in it."""
    path = Path.cwd() / LOCAL_FILE
    if not path.is_file() or path.resolve() == machine.user_config.resolve():
        return None
    environment = ConfigEnvironment(dict(os.environ), machine.home, Path.cwd())
    file = TrustedFile.read(path, environment)
    decisions = TrustDecisions(machine.settings_folder / "trusted.json")
    is_trusted = decisions.find(file)
    # Without a terminal nobody can answer, and a script must not decide for the user.
    if is_trusted is None and sys.stdin.isatty() and err.is_terminal:
        _show_commands(file.path)
        is_trusted = typer.confirm("Trust this file?", err=True)
        decisions.save(file, trusted=is_trusted)
    if is_trusted:
        return file
    print_warning(
        "not used",
        f"{LOCAL_FILE} in this folder is not trusted. To use it anyway, pass "
        f"--config {LOCAL_FILE}.",
    )
    return None


def _show_commands(path: Path) -> None:
    """Show what a file would run, as it is written."""
    err.paragraph(f"This folder has a {LOCAL_FILE}: {path}")
    try:
        value = read_document(path).value
    except ConfigError as exc:
        err.paragraph(exc.message)
        return
    servers = value.get("servers")
    for name, entry in servers.items() if isinstance(servers, dict) else ():
        if not isinstance(entry, dict):
            err.paragraph(f"  {name}: not a server")
            continue
        args: Any = entry.get("args")
        words = [entry.get("command"), *(args if isinstance(args, list) else [])]
        command = " ".join(str(word) for word in words if word)
        err.paragraph(f"  {name}: {command or entry.get('url', 'settings only')}")
    imports = value.get("import")
    for name in imports if isinstance(imports, list) else ():
        err.paragraph(f"  and the servers of {name}")
    err.print("Using it runs these commands on your machine.")
