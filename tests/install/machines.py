"""Machines made up for the tests: a home folder with one client in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pegboard.install import carrying_out
from pegboard.install.clients import Client, Machine, System, client_of
from pegboard.install.plan import Plan, plan_install, plan_uninstall

GOLDEN = Path(__file__).parent / "golden"
COMMAND = ("/opt/pegboard/bin/pegboard",)


@dataclass(frozen=True)
class Desk:
    """One client on one machine."""

    client: Client
    machine: Machine

    @property
    def file(self) -> Path:
        return self.machine.file_of(self.client)

    def write(self, data: bytes) -> Path:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(data)
        return self.file

    def plan(self, **given: object) -> Plan:
        return plan_install(self.client, self.machine, command=COMMAND, **given)  # pyright: ignore[reportArgumentType]

    def install(self, **given: object) -> Plan:
        plan = self.plan(**given)
        carrying_out.install(plan)
        return plan

    def uninstall(self) -> Plan:
        plan = plan_uninstall(self.client, self.machine)
        carrying_out.uninstall(plan)
        return plan


def desk(key: str, home: Path, system: System = "linux") -> Desk:
    return Desk(client_of(key), Machine(system, home))


def golden(key: str, name: str) -> Path:
    """A kept file of a client, whatever its suffix."""
    return next((GOLDEN / key).glob(f"{name}.*"))
