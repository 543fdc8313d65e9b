"""`pegboard login` and `pegboard logout`: the logins to servers that need one."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
import webbrowser
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import anyio
import anyio.from_thread
import typer

from pegboard.cli.config_discovery import find_source, list_sources
from pegboard.cli.output import (
    EXIT_FAILED,
    JsonOption,
    abbreviate_home,
    format_count,
    line,
    out,
    print_error,
    print_json,
    print_warning,
)
from pegboard.cli.targets import ConfigOption
from pegboard.core.calls import LOCAL_CALLER
from pegboard.credentials import Credentials
from pegboard.errors import ConfigError

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream

    from pegboard.config.loader import Configuration
    from pegboard.oauth.access_tokens import ServerTokens
    from pegboard.oauth.login_flow import Login
    from pegboard.oauth.logins import Logins
    from pegboard.upstream.spec import UpstreamSpec

_POLL_INTERVAL = 0.05
_MAX_LINE = 65_536
ServerArgument = Annotated[
    str, typer.Argument(metavar="SERVER", help="The name of a server.", show_default=False)
]
PrincipalOption = Annotated[
    str,
    typer.Option(
        "--as", metavar="PRINCIPAL", help="Whose login it is, in a gateway for several people."
    ),
]


def login(
    server: ServerArgument,
    config: ConfigOption = None,
    principal: PrincipalOption = LOCAL_CALLER.principal,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open a browser, only print the URL.")
    ] = False,
    scope: Annotated[
        str | None, typer.Option(metavar="SCOPES", help="Further scopes to request.")
    ] = None,
) -> None:
    """Log in to a server. On a machine without a browser, paste the URL that you are sent to."""
    target = _find_server(server, config)
    anyio.run(_log_in, target, principal, scope, not no_browser)


def logout(
    server: ServerArgument,
    config: ConfigOption = None,
    principal: PrincipalOption = LOCAL_CALLER.principal,
    as_json: JsonOption = False,
) -> None:
    """Log out of a server: the login is revoked and deleted."""
    target = _find_server(server, config)
    found, problem = anyio.run(_log_out, target, principal)
    if as_json:
        print_json({"server": server, "principal": principal, "found": found, "problem": problem})
    elif not found:
        out.print(f"There is no login for {server}.")
    else:
        out.print(f"Logged out of {server}.")
    if problem:
        print_error(f"The login was deleted here, but not revoked: {problem}.")
        raise typer.Exit(EXIT_FAILED)


# Which server ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Target:
    """A server, and the configuration that it is in."""

    spec: UpstreamSpec
    configuration: Configuration
    folder: Path
    """Where its catalog is cached."""

    def open_logins(self) -> tuple[Logins, ServerTokens]:
        from pegboard.gateway.from_settings import build_logins, open_store

        store = open_store(self.configuration.settings, None)
        logins = build_logins(self.configuration.settings, store)
        tokens, name = logins.tokens(self.spec), self.spec.name
        if tokens is not None:
            return logins, tokens
        if self.spec.transport == "stdio":
            reason = (
                f"{name} is a program on this machine. It gets its credentials from its "
                f"environment (`env`), not from a login."
            )
        elif not self.spec.oauth.enabled:
            reason = f"Logins to {name} are switched off (`oauth.enabled`)."
        else:
            reason = (
                f"{name} has an `Authorization` header of its own, so there is no login for it."
            )
        raise ConfigError(reason, server=name)


def _find_server(name: str, config: Path | None) -> _Target:
    """The server of that name, in a file or in any configuration of this user.

    Raises:
        ConfigError: There is none, or there are several.
    """
    sources = [find_source(config)] if config is not None else list_sources()
    # By URL: two clients that have the same server share its login.
    found: dict[str | None, _Target] = {}
    known: list[str] = []
    for source in sources:
        try:
            configuration = source.read()
        except ConfigError as exc:
            if config is not None:
                raise
            print_warning("not used", abbreviate_home(exc.message))  # the server may be elsewhere
            continue
        for spec in (*configuration.upstreams, *configuration.disabled):
            known.append(spec.name)
            if spec.name == name:
                target = _Target(spec, configuration, source.folder(configuration))
                found.setdefault(spec.url, target)
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise ConfigError(f"Several servers are called {name}: name the file with --config.")
    if not sources:
        raise ConfigError("No configuration was found: name the file with --config.")
    raise ConfigError(
        f"There is no server {name!r}. Servers: {', '.join(sorted(set(known))) or 'none'}."
    )


# Logging in ------------------------------------------------------------------------------------


async def _log_in(target: _Target, principal: str, scope: str | None, use_browser: bool) -> None:
    from pegboard.oauth.http_requests import OAuthError
    from pegboard.oauth.login_flow import Login, LoginRequest
    from pegboard.oauth.logins import find_earlier_redirect
    from pegboard.oauth.loopback import listen_for_redirect

    spec = target.spec
    logins, tokens = target.open_logins()
    earlier = await find_earlier_redirect(tokens, principal)
    try:
        async with listen_for_redirect(spec.oauth.redirect, earlier) as listener:
            begun = await Login.begin(
                LoginRequest(
                    tokens,
                    principal,
                    listener.redirect_uri,
                    metadata_url=logins.metadata_url,
                    scope=scope,
                    headers=Credentials().for_everybody(spec.headers, server=spec.name),
                )
            )
            listener.receive = begun.receive
            _invite(spec.name, begun, use_browser)
            await _wait(begun)
    except OAuthError as exc:
        raise ConfigError(f"{spec.name}: {exc}.", server=spec.name) from exc
    if begun.failure is not None:
        print_error(f"{spec.name}: {begun.failure}.")
        raise typer.Exit(EXIT_FAILED)
    out.print(line(("Signed in", "green"), f" to {spec.name}."))
    if principal == LOCAL_CALLER.principal:
        await _list_tools(target)


async def _list_tools(target: _Target) -> None:
    """List the server now that it can be: gateways that failed to would wait before they retry."""
    from pegboard.gateway.health_check import check_servers

    alone = replace(
        target.configuration, upstreams=(target.spec,), disabled=(), sources=(), unusable={}
    )
    [found] = await check_servers(alone, target.folder)
    if found.reachable:
        out.print(f"It has {format_count(found.tools, 'tool')}.")
    for problem in found.problems:
        print_warning("problem", problem)


def _invite(server: str, begun: Login, use_browser: bool) -> None:
    out.print(f"To log in to {server} at {begun.host}, open this URL:\n")
    # Printed by itself: it must be possible to copy it, or to click it, as a whole.
    out.print(begun.address, soft_wrap=True)
    is_opened = use_browser and webbrowser.open(begun.address)
    where = "A browser was opened. " if is_opened else ""
    out.print(
        f"\n{where}If the browser is on another machine, it will be sent to a page that it "
        f"cannot open. Paste the URL of that page here and press Enter.",
        soft_wrap=True,
    )
    sys.stdout.flush()  # a program that reads the address would wait for it


async def _wait(begun: Login) -> None:
    """Return when the login has ended: by a redirect to this machine, or by a pasted address."""
    from pegboard.oauth.http_requests import OAuthError
    from pegboard.oauth.login_flow import WrongRedirect
    from pegboard.oauth.logins import LOGIN_TIMEOUT

    async def take_pasted() -> None:
        async with _read_lines() as pasted:
            async for text in pasted:
                try:
                    await begun.receive(text)
                except WrongRedirect as exc:
                    print_error(str(exc))
                except OAuthError:
                    return  # it has failed, which the caller reports

    with anyio.move_on_after(LOGIN_TIMEOUT):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(take_pasted)
            await begun.done.wait()
            tasks.cancel_scope.cancel()
    begun.give_up(f"nobody completed the login within {LOGIN_TIMEOUT / 60:g} minutes")


@asynccontextmanager
async def _read_lines() -> AsyncGenerator[MemoryObjectReceiveStream[str]]:
    """The lines that the user types while the block runs, until standard input ends."""
    send, receive = anyio.create_memory_object_stream[str](8)
    token, has_ended = anyio.lowlevel.current_token(), threading.Event()
    fd = sys.stdin.fileno()

    def read() -> None:
        rest = b""
        try:
            while not has_ended.is_set():
                # Never reads ahead: text typed after the login answers the next question, such as
                # those of `install`. Windows cannot wait for a terminal this way.
                is_ready = os.name != "posix" or select.select([fd], [], [], _POLL_INTERVAL)[0]
                if not is_ready or has_ended.is_set():
                    continue
                part = os.read(fd, _MAX_LINE)
                *lines, rest = (rest + part).split(b"\n") if part else (rest, b"")
                for one in lines:
                    if text := one.decode(errors="replace").strip():
                        anyio.from_thread.run(send.send, text, token=token)
                if not part:
                    break
            anyio.from_thread.run_sync(send.close, token=token)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, RuntimeError):
            return  # the login has ended meanwhile

    # Not a thread of anyio: reading a terminal cannot be interrupted everywhere, and must not
    # delay the end of the command.
    threading.Thread(target=read, daemon=True).start()
    async with receive:
        try:
            yield receive
        finally:
            has_ended.set()


# Logging out -----------------------------------------------------------------------------------


async def _log_out(target: _Target, principal: str) -> tuple[bool, str | None]:
    """Whether there was a login, and why it could not be revoked, if it could not."""
    from pegboard.oauth.clients import client_of_grant, revoke
    from pegboard.oauth.grant_storage import GrantUnreadable
    from pegboard.oauth.http_requests import OAuthError, open_http
    from pegboard.upstream.catalog_cache import CatalogCache

    _, tokens = target.open_logins()
    key, problem = tokens.key(principal), None
    async with tokens.storage.lock(key):
        try:
            grant = await tokens.storage.load(key)
        except GrantUnreadable as exc:
            await tokens.storage.delete(key)
            return True, exc.message.rstrip(".")
        if grant is None:
            return False, None
        try:
            async with open_http() as http:
                await revoke(http, grant, client_of_grant(grant, tokens.options))
        except OAuthError as exc:
            problem = str(exc)
        # Deleted in any case: whoever logs out wants it gone from this machine.
        await tokens.storage.delete(key)
    if principal == LOCAL_CALLER.principal:
        CatalogCache(target.folder / "catalogs").mark_failed(
            target.spec,
            f"{target.spec.name} needs a login: run `pegboard login {target.spec.name}`.",
            now=time.time(),
            needs_login=True,
        )
    return True, problem
