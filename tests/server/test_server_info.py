"""What a server reports about itself by default."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport

from pegboard import Pegboard
from pegboard.server.serving import build_server

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_server_reports_a_version(mode: str) -> None:
    for given, reported in (("", version("pegboard")), ("7.1", "7.1")):
        server = build_server(Pegboard("office", version=given))
        async with Client(InMemoryTransport(server), mode=mode) as client:
            assert client.server_info is not None
            assert client.server_info.version == reported
