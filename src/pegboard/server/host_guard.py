"""Which HTTP requests are answered at all, by their `Host` and `Origin` headers.

A web page can make its own host name resolve to this machine (DNS rebinding), and its scripts can
then talk to whatever listens here. Such a request has the page's name in its `Host` header. So a
request is answered only if its host is a name that no stranger can control: an IP address, this
machine, or a name that the operator has listed. An origin, which browsers send, must have the same
host and port, or be listed: another port of this machine may belong to another user, and browsers
share cookies among ports.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_DEFAULT_PORTS = {"http": 80, "https": 443}
MISDIRECTED = 421
FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class HostGuard:
    """The hosts and origins for which one listening address answers.

    Args:
        names: Host names of this machine, without ports.
        any_ip: Whether any IP address is accepted as a host.
        hosts: Further values of `Host`: `name`, `name:port` or `name:*`.
        origins: Further values of `Origin`; `*` as a port means any.
    """

    names: frozenset[str] = _LOOPBACK
    any_ip: bool = False
    hosts: frozenset[str] = field(default_factory=frozenset[str])
    origins: frozenset[str] = field(default_factory=frozenset[str])

    @classmethod
    def bound_to(cls, host: str, *, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> Self:
        """The guard of a server that listens on `host`."""
        names = set(_LOOPBACK)
        # A server for other machines is addressed by whatever address they know it by. An IP
        # address cannot be rebound, so all of them are safe.
        is_exposed = host not in _LOOPBACK
        if is_exposed:
            names |= {host.lower(), socket.gethostname().lower()}
        return cls(frozenset(names), is_exposed, _lower(hosts), _lower(origins))

    def refuses(self, host: str | None, origin: str | None) -> int | None:
        """The HTTP status to refuse a request with; `None` when it may pass."""
        if host is None or not self._accepts_host(host.lower()):
            return MISDIRECTED
        if origin is not None and not self._accepts_origin(origin.lower(), host.lower()):
            return FORBIDDEN
        return None

    def _accepts_host(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        if name is None:
            return False
        listed = {host, name, f"{host.rpartition(':')[0]}:*", f"{name}:*"}
        return name in self.names or bool(listed & self.hosts) or (self.any_ip and _is_ip(name))

    def _accepts_origin(self, origin: str, host: str) -> bool:
        without_port = f"{origin.rpartition(':')[0]}:*"
        if origin in self.origins or without_port in self.origins:
            return True
        # The same host with a default port on one side is the same origin.
        scheme = origin.partition("://")[0]
        default = _DEFAULT_PORTS.get(scheme)
        here = _host_and_port(f"{scheme}://{host}", default)
        return here is not None and here == _host_and_port(origin, default)


class HostGuardMiddleware:
    """ASGI middleware that refuses the requests which a `HostGuard` does not accept."""

    def __init__(self, app: ASGIApp, guard: HostGuard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        status = self._guard.refuses(_text(headers, b"host"), _text(headers, b"origin"))
        if status is None:
            await self._app(scope, receive, send)
            return
        from starlette.responses import PlainTextResponse

        wrong = "Host" if status == MISDIRECTED else "Origin"
        refusal = PlainTextResponse(f"Invalid {wrong} header", status_code=status)
        await refusal(scope, receive, send)


def _text(headers: dict[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")


def _host_and_port(url: str, default: int | None) -> tuple[str, int] | None:
    """Both parts of an origin; `None` for one that no browser would send."""
    try:
        parts = urlsplit(url)
        port = parts.port or default
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname and port else None


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _lower(values: Iterable[str]) -> frozenset[str]:
    return frozenset(value.lower() for value in values)
