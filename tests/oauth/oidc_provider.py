"""`oidc-provider`, a certified OpenID provider, as an authorization server; needs npm."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.shared.auth import OAuthClientInformationFull
from pydantic import AnyUrl
from tests.conftest import missing_part
from tests.e2e.test_serving import free_port
from tests.oauth.browser import REDIRECT

PACKAGES = Path(__file__).parents[1] / "official"
NODE = PACKAGES / "node_modules" / "node" / "bin" / "node"


BY_HAND = OAuthClientInformationFull(
    client_id="by-hand",
    client_secret="secret-of-by-hand",
    redirect_uris=[AnyUrl(REDIRECT)],
    token_endpoint_auth_method="client_secret_post",
)
"""A client that may request any scope; one that registers itself is bound to those it names."""


def find_package(name: str) -> Path:
    """The folder of an npm package; the test is skipped without it."""
    folder = PACKAGES / "node_modules" / name
    if not folder.exists() or not NODE.exists():
        missing_part(f"{name} is not installed (npm ci in tests/official)")
    return folder


@dataclass
class OidcProvider:
    """A running provider, and the events that it has reported."""

    issuer: str
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def count(self, event: str, **about: Any) -> int:
        """How often something happened."""
        return sum(one["event"] == event and about.items() <= one.items() for one in self.events)


@asynccontextmanager
async def oidc_provider(resource: str, **options: Any) -> AsyncGenerator[OidcProvider]:
    """A provider that issues tokens for a resource; `oidc_provider.mjs` has the options."""
    find_package("oidc-provider")
    port = free_port()
    program = PACKAGES / "oidc_provider.mjs"
    command = [str(NODE), str(program), str(port), resource, json.dumps(options)]
    # It warns about its defaults for production on stderr.
    async with await anyio.open_process(command, stderr=None, cwd=PACKAGES) as process:
        provider = OidcProvider(f"http://127.0.0.1:{port}")
        assert process.stdout is not None
        lines = BufferedByteReceiveStream(process.stdout)

        async def read_event() -> None:
            line = await lines.receive_until(b"\n", 1 << 20)
            if line.startswith(b"{"):  # it also prints notices about its own configuration
                provider.events.append(json.loads(line))

        async def follow() -> None:
            while True:
                await read_event()

        try:
            with anyio.fail_after(20):
                while not provider.count("listening"):
                    await read_event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow)
                yield provider
                tasks.cancel_scope.cancel()
        finally:
            process.terminate()
