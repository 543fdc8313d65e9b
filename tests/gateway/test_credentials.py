"""Each caller is known to an upstream by a credential of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver.context import Context
from mcp.shared.exceptions import MCPError
from tests.conformance.clients import served

from pegboard.config.loader import Configuration
from pegboard.config.settings import Settings
from pegboard.core.calls import Caller
from pegboard.credentials import Credentials, is_template
from pegboard.errors import NotPermitted, UpstreamError
from pegboard.gateway.gateway import Gateway
from pegboard.upstream.spec import UpstreamSpec


def credentials(**environ: str) -> Credentials:
    return Credentials(environ, lambda service, name: {"crm/ann": "ring"}.get(f"{service}/{name}"))


def test_templates_are_filled_from_the_environment_files_and_the_keyring(tmp_path: Path) -> None:
    (tmp_path / "ann").write_text("from file\n")
    templates = {
        "Plain": "stays with the connection",
        "Who": "{{principal}}",
        "Env": "Bearer {{env:TOKEN_{principal}}}",
        "File": f"{{{{file:{tmp_path}/{{principal}}}}}}",
        "Ring": "{{ keyring:crm }}",
    }
    filled = credentials(TOKEN_ann="secret").headers(templates, "ann", server="crm")
    assert filled == {"Who": "ann", "Env": "Bearer secret", "File": "from file", "Ring": "ring"}
    assert not is_template(templates["Plain"])


@pytest.mark.parametrize("principal", ["bob", "../ann", "a/nn", "ann\r\nX: y", "", "ann.", "änn"])
def test_who_has_no_credential_gets_nobody_elses(tmp_path: Path, principal: str) -> None:
    (tmp_path / "ann").write_text("from file")
    for template in (
        f"{{{{file:{tmp_path}/x/{{principal}}}}}}",
        "{{env:TOKEN_{principal}}}",
        "{{keyring:crm}}",
        "{{unknown}}",
    ):
        with pytest.raises(NotPermitted) as refused:
            credentials(TOKEN_ann="secret").headers({"A": template}, principal, server="crm")
        assert "secret" not in refused.value.message
        assert str(tmp_path) not in refused.value.message


def test_a_principal_with_a_line_break_cannot_add_a_header() -> None:
    with pytest.raises(NotPermitted):
        credentials().headers({"Who": "{{principal}}"}, "ann\r\nAdmin: yes", server="crm")


@pytest.mark.anyio
async def test_an_upstream_sees_the_credential_of_each_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_ann", "key of ann")
    monkeypatch.setenv("CRM_bob", "key of bob")
    server = MCPServer("crm")

    @server.tool()
    def whoami(ctx: Context) -> str:
        """Who calls."""
        request = ctx.request_context.request
        assert request is not None
        return str(request.headers.get("x-key"))

    with served(server.streamable_http_app()) as url:
        headers = {"X-Key": "{{env:CRM_{principal}}}"}
        spec = UpstreamSpec("crm", transport="http", url=f"{url}/mcp", headers=headers)
        configuration = Configuration(Settings(), (spec,))
        async with Gateway(configuration, folder=tmp_path) as gateway:
            await gateway.wait_until_listed()
            for name in ("ann", "bob", "ann"):
                result = await gateway.board.call("crm_whoami", caller=Caller(name))
                assert f"key of {name}" in str(result.output)
            with pytest.raises(NotPermitted, match="credential of your own"):
                await gateway.board.call("crm_whoami", caller=Caller("eve"))


@pytest.mark.anyio
async def test_an_error_that_repeats_a_caller_s_credential_does_not_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRM_ann", "key-of-ann-1")
    server = MCPServer("crm")

    @server.tool()
    def whoami(ctx: Context) -> str:
        """Refuse, and say whom."""
        request = ctx.request_context.request
        assert request is not None
        raise MCPError(-32000, f"refused {request.headers.get('x-key')}", {"key": "key-of-ann-1"})

    with served(server.streamable_http_app()) as url:
        headers = {"X-Key": "{{env:CRM_{principal}}}"}
        spec = UpstreamSpec("crm", transport="http", url=f"{url}/mcp", headers=headers)
        async with Gateway(Configuration(Settings(), (spec,)), folder=tmp_path) as gateway:
            await gateway.wait_until_listed()
            with pytest.raises(UpstreamError) as failed:
                await gateway.board.call("crm_whoami", caller=Caller("ann"))
    assert failed.value.message == "refused [redacted]"
    assert failed.value.details["data"] == {"key": "[redacted]"}
