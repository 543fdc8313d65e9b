"""What is known of one upstream before it is reached: `UpstreamSpec`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pegboard.errors import ConfigError

Transport: TypeAlias = Literal["stdio", "http", "sse"]
Isolation: TypeAlias = Literal["shared", "session"]


@dataclass(frozen=True, slots=True)
class UpstreamSpec:
    """One server: how to reach it, how long to wait for it, who may share a connection to it.

    `isolation` says who shares: everybody, or only the requests of one front session. `None`
    leaves it to the protocol: a modern server keeps nothing between requests and is shared, a
    legacy one is connected to once per front session. `stateless` promises that a legacy server
    may be shared too. Durations are seconds; `idle_stop=0` keeps it running.
    """

    name: str
    transport: Transport = "stdio"
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout: float = 60.0
    isolation: Isolation | None = None
    stateless: bool = False
    idle_stop: float = 600.0
    start_timeout: float = 60.0

    def __post_init__(self) -> None:
        if self.transport == "stdio" and not self.command:
            raise ConfigError(f"Server {self.name!r} has no `command` to start.", server=self.name)
        if self.transport != "stdio" and not self.url:
            raise ConfigError(f"Server {self.name!r} has no `url` to reach.", server=self.name)
