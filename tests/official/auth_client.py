"""What the official suite runs as the client of its `auth/*` scenarios: a gateway, and a call.

The suite is the server and the authorization server. Here a gateway stands in front of it, as
`pegboard serve` would. A call of the first tool is made; where that needs a login, a browser opens
the address in the error, and the call is made again, as a person would.

    python auth_client.py URL
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
import httpx2

from pegboard.config.loader import Configuration
from pegboard.config.settings import LoginSettings, Settings
from pegboard.core.calls import LOCAL_CALLER
from pegboard.errors import LoginRequired
from pegboard.gateway.gateway import Gateway
from pegboard.oauth.http_requests import OAuthError
from pegboard.oauth.login_options import OAuthOptions
from pegboard.upstream.spec import UpstreamSpec

CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
MAX_LOGINS = 3
PATIENCE = 25.0


def read_issuer(url: str) -> str:
    """The issuer that an operator would copy from the documentation of the server."""
    address = httpx2.URL(url)
    about = address.copy_with(path=f"/.well-known/oauth-protected-resource{address.path}")
    return httpx2.get(about).json()["authorization_servers"][0]


def build_options(url: str, context: dict[str, Any]) -> OAuthOptions:
    """The `[servers.x.oauth]` of a scenario, from what the suite says about its clients."""
    given: dict[str, Any] = {
        "client_id": context.get("client_id"),
        "client_secret": context.get("client_secret"),
        "issuer": context.get("issuer"),
    }
    if "private_key_pem" in context:
        given |= {"grant": "client_credentials", "private_key": context["private_key_pem"]}
    elif context.get("name") == "auth/client-credentials-basic":
        given |= {"grant": "client_credentials", "client_auth": "client_secret_basic"}
        given["issuer"] = read_issuer(url)  # a secret is sent to an issuer by name only
    elif "idp_token_endpoint" in context:
        given |= {
            "grant": "id_jag",
            "identity_provider": context["idp_token_endpoint"],
            "identity_client_id": context["idp_client_id"],
            "subject_token": context["idp_id_token"],
        }
    return OAuthOptions(**given)


async def visit(url: str) -> None:
    async with httpx2.AsyncClient(follow_redirects=True, timeout=20) as browser:
        await browser.get(url)


async def log_in(gateway: Gateway, spec: UpstreamSpec, challenge: str | None = None) -> None:
    """Log in as the user of this machine, with a browser that agrees to everything."""
    tokens = gateway.logins.tokens(spec)
    assert tokens is not None
    login = await gateway.logins.begin(tokens, LOCAL_CALLER.principal, challenge)
    await visit(login.address)
    await login.done.wait()
    if login.failure is not None:
        raise OAuthError(login.failure)


async def find_tool(gateway: Gateway, spec: UpstreamSpec) -> str | None:
    """The name of the first tool, once the server lets itself be listed."""
    for _ in range(MAX_LOGINS):
        await gateway.wait_until_listed()
        if spec.name in gateway.catalogs:
            with anyio.move_on_after(3):  # it is mounted a moment after it was listed
                while gateway.catalogs.tools() and not gateway.board.known_catalog.tools:  # noqa: ASYNC110
                    await anyio.sleep(0.02)
            return next((tool.name for tool in gateway.board.known_catalog), None)
        if spec.name not in gateway.discovery.personal.servers:
            raise SystemExit(gateway.failures[spec.name])
        await log_in(gateway, spec)
        with anyio.move_on_after(5):  # the server is listed again after a login
            while spec.name not in gateway.catalogs:  # noqa: ASYNC110 the gateway has no event
                await anyio.sleep(0.02)
    raise SystemExit("The server is not listed, however often we log in.")


async def main(url: str) -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    spec = UpstreamSpec("s", transport="http", url=url, oauth=build_options(url, context))
    logins = LoginSettings(store="file", client_metadata_url=CLIENT_METADATA)
    configuration = Configuration(Settings(oauth=logins), (spec,))
    folder = tempfile.mkdtemp()
    os.environ["PEGBOARD_HOME"] = folder
    with anyio.fail_after(PATIENCE):
        async with Gateway(configuration, folder=Path(folder)) as gateway:
            try:
                tool = await find_tool(gateway, spec)
                for _ in range(MAX_LOGINS if tool is not None else 0):
                    try:
                        await gateway.board.call(str(tool), {})
                        return
                    except LoginRequired as exc:
                        if "url" not in exc.details:
                            raise
                        await visit(exc.details["url"])
            except (OAuthError, LoginRequired) as exc:
                raise SystemExit(f"The login failed: {exc}") from exc


if __name__ == "__main__":
    anyio.run(main, sys.argv[-1])
