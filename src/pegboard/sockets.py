"""Sockets bound to the address that a server is to listen on.

They are bound before anything else is started, so that an address that is taken is reported at
once. They do not listen yet: the server does that when it is ready.
"""

from __future__ import annotations

import socket
from contextlib import suppress

from pegboard.errors import ConfigError


def bind_sockets(host: str, port: int) -> list[socket.socket]:
    """A socket for every address that a host name stands for, such as both of `localhost`.

    Raises:
        ConfigError: There is no such address here, or another process has it.
    """
    bound: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, protocol, _, address in dict.fromkeys(found):
            made = socket.socket(family, socket.SOCK_STREAM, protocol)
            bound.append(made)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # Otherwise it would take the IPv4 port as well, which has a socket of its own here.
                with suppress(OSError):
                    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind(address)
    except OSError as exc:
        for made in bound:
            made.close()
        raise _listen_error(host, port, exc) from exc
    return bound


def bind_socket(host: str, port: int, *, share_port: bool = False) -> socket.socket:
    """One socket for a numeric address or an IPv4 host name.

    Args:
        host: The address.
        port: The port; 0 for any that is free.
        share_port: Whether several sockets with this option may be bound to the same address.

    Raises:
        ConfigError: There is no such address here, or another process has it.
    """
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if share_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind((host, port))
    except OSError as exc:
        made.close()
        raise _listen_error(host, port, exc) from exc
    made.setblocking(False)
    return made


def _listen_error(host: str, port: int, exc: OSError) -> ConfigError:
    return ConfigError(
        f"Cannot listen on {host}:{port}: {exc.strerror or exc}. Choose another address, or "
        "stop the program that listens there."
    )
