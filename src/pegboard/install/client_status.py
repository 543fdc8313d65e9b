"""The clients on a machine and their servers, including those behind an installed Pegboard.

A client's own file shows one entry once Pegboard is installed. The servers behind that entry are
still the client's, so everything that lists or measures a client's servers looks through it:

    direct    servers in the client's own file
    behind    servers that `pegboard install` has moved into our folder
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pegboard.config.documents import read_document
from pegboard.errors import PegboardError
from pegboard.install.client_entry import NAME
from pegboard.install.client_files import (
    InstallFolder,
    InstallRecord,
    install_folder,
    list_install_records,
    read_client_file,
    read_install_record,
)
from pegboard.install.clients import Client, Machine, load_clients
from pegboard.install.config_editor import parse_server_table


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """One file of a client: what is in it, and what was moved out of it."""

    client: Client
    path: Path
    folder: InstallFolder
    is_found: bool
    is_usual: bool = True
    """False for a file that was named with `--file`."""
    record: InstallRecord | None = None
    direct: tuple[str, ...] = ()
    behind: tuple[str, ...] = ()
    problem: str | None = None

    @property
    def servers(self) -> tuple[str, ...]:
        """All its servers."""
        return tuple(dict.fromkeys([*self.direct, *self.behind]))

    @property
    def server_files(self) -> list[Path]:
        """The files that define its servers, for the `import` of a configuration."""
        files = [self.path] if self.direct else []
        return [*files, self.folder.servers] if self.behind else files


def inspect_clients(machine: Machine) -> list[ClientStatus]:
    """Every supported client, and files that Pegboard was installed into with `--file`."""
    known = load_clients()
    usual = [inspect_client(client, machine) for client in known.values()]
    seen = {status.path for status in usual}
    # The record of a client that this version does not know is left to the version that wrote it.
    return usual + [
        inspect_client(known[record.client], machine, Path(record.file))
        for record in list_install_records(machine)
        if record.client in known and Path(record.file) not in seen
    ]


def inspect_client(client: Client, machine: Machine, path: Path | None = None) -> ClientStatus:
    """The status of a client; a problem with its file is reported as part of it."""
    is_usual = path is None
    path = path or machine.client_file(client)
    folder = install_folder(client, machine, path)
    # A client without a file can still be installed.
    is_found = machine.has(client) if is_usual else path.exists()
    record, direct, behind, problem = None, (), (), None
    try:
        record = read_install_record(folder)
        direct = tuple(n for n in _server_names(path, client) if n != NAME)
        behind = _server_names(folder.servers, client) if record else ()
        # A file that cannot be changed, such as a symbolic link, still has servers.
        read_client_file(path)
    except PegboardError as exc:
        problem = exc.message
    return ClientStatus(client, path, folder, is_found, is_usual, record, direct, behind, problem)


def _server_names(path: Path, client: Client) -> tuple[str, ...]:
    if not path.exists():
        return ()
    return tuple(parse_server_table(read_document(path).text, path, client.table))
