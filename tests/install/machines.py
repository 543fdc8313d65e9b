"""Machines made up for the tests: a home folder with one client in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pegboard.install.clients import Client, Machine, System, find_client
from pegboard.install.plan import Plan, apply_install, apply_uninstall, plan_install, plan_uninstall

GOLDEN = Path(__file__).parent / "golden"
COMMAND = ("/opt/pegboard/bin/pegboard",)


@dataclass(frozen=True)
class Desk:
    """One client on one machine."""

    client: Client
    machine: Machine

    @property
    def file(self) -> Path:
        return self.machine.client_file(self.client)

    def write(self, data: bytes | str) -> Path:
        path = self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    def text(self) -> str:
        return self.file.read_bytes().decode()

    def plan(self, **given: Any) -> Plan:
        return plan_install(self.client, self.machine, command=COMMAND, **given)

    def install(self, **given: Any) -> Plan:
        plan = self.plan(**given)
        apply_install(plan)
        return plan

    def uninstall(self) -> Plan:
        plan = plan_uninstall(self.client, self.machine)
        apply_uninstall(plan)
        return plan


def desk(key: str, home: Path, system: System = "linux") -> Desk:
    return Desk(find_client(key), Machine(system, home))


def golden(key: str, name: str) -> bytes:
    """A golden file of a client, whatever its suffix."""
    return next((GOLDEN / key).glob(f"{name}.*")).read_bytes()
