"""Which servers of a client need a login that Pegboard does not have.

A client that logs in to a server stores the tokens for itself. Behind Pegboard such a server would
answer with 401 until the user logs in again, so `install` leaves it where it is until then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import anyio

from pegboard.config.server_entries import ConfigEnvironment, read_servers
from pegboard.core.calls import LOCAL_CALLER
from pegboard.credentials import Credentials
from pegboard.errors import PegboardError
from pegboard.oauth.grant_storage import GrantStorage
from pegboard.oauth.grants import GrantKey
from pegboard.oauth.http_requests import OAuthError, open_http
from pegboard.oauth.login_flow import probe
from pegboard.upstream.spec import UpstreamSpec

PROBE_TIMEOUT = 5.0
"""Seconds for a server to say whether it wants a login."""


def find_missing_logins(
    path: Path, names: Collection[str], environment: ConfigEnvironment, storage: GrantStorage
) -> list[str]:
    """Those of the named servers in a client's file that need a login which does not exist yet.

    They are asked, all at once; one that does not answer counts as one that needs none.
    """
    try:
        specs = read_servers(path, environment).specs
    except PegboardError:
        return []  # reported by those who need it
    remote = [spec for spec in specs if spec.name in names and spec.uses_oauth]
    return anyio.run(_find_missing, remote, storage) if remote else []


async def _find_missing(specs: Iterable[UpstreamSpec], storage: GrantStorage) -> list[str]:
    missing: list[str] = []

    async def check(spec: UpstreamSpec) -> None:
        if await _needs_login(spec, storage):
            missing.append(spec.name)

    async with anyio.create_task_group() as tasks:
        for spec in specs:
            tasks.start_soon(check, spec)
    return sorted(missing)


async def _needs_login(spec: UpstreamSpec, storage: GrantStorage) -> bool:
    """Whether a server wants a login of the user, and there is none yet."""
    if spec.oauth.grant != "authorization_code":
        return False  # Pegboard logs in by itself
    with suppress(PegboardError):  # a grant that cannot be read counts as missing
        grant = await storage.load(GrantKey(spec.name, spec.url or "", LOCAL_CALLER.principal))
        if grant is not None and grant.state == "signed in":
            return False
    headers = Credentials().for_everybody(spec.headers, server=spec.name)
    with anyio.move_on_after(PROBE_TIMEOUT):
        async with open_http() as http:
            try:
                await probe(http, spec.url or "", headers)
            except OAuthError:
                return False  # it answers without a login, or not at all
            return True
    return False
