"""Credentials of an OpenAPI source: where they go, and that no argument gets in their way."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pegboard.adapters.openapi.document import OpenApiSpec, parse_origin, strip_credentials
from pegboard.adapters.openapi.openapi_source import OpenApiSource
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError, InvalidArguments

pytestmark = pytest.mark.anyio
KEY = "key-0123456789-abc"


class Api(BaseHTTPRequestHandler):
    """Keeps what arrives; `/doc` is a document, `/refuse` repeats the request in its refusal."""

    document: ClassVar[JsonObject] = {}
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride] what serves it

    def do_GET(self) -> None:
        size = int(self.headers.get("content-length", 0))
        body = self.rfile.read(size).decode()
        headers = {k.lower(): v for k, v in self.headers.items()}
        if self.path.startswith("/doc"):
            self._answer(200, json.dumps(self.document), "application/json")
            return
        self.server.seen.append((self.path, headers, body))
        if self.path.startswith("/refuse"):
            self._answer(403, f"bad {headers.get('x-key')}\u200b {self.path}", "text/plain")
        elif self.path.startswith("/file"):
            self._answer(200, "PK", "application/zip")
        else:
            self._answer(200, "{}", "application/json")

    do_POST = do_GET

    def _answer(self, status: int, text: str, kind: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None: ...


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Api)
        self.seen: list[tuple[str, dict[str, str], str]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def api() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def document(*servers: str, parameters: list[Any] | None = None, path: str = "/read") -> JsonObject:
    form = {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": url} for url in servers],
        "paths": {
            path: {"get": {"operationId": "read", "parameters": parameters or []}},
            "/send": {
                "post": {"operationId": "send", "requestBody": {"required": True, "content": form}}
            },
        },
    }


def spec_of(tmp_path: Path, value: JsonObject, **more: Any) -> OpenApiSpec:
    path = tmp_path / "api.json"
    path.write_text(json.dumps(value))
    fields: dict[str, Any] = {"document": str(path), "headers": {"X-Key": KEY}, **more}
    return OpenApiSpec(name="a", **fields)


async def call(spec: OpenApiSpec, name: str = "read", **arguments: Any) -> CallResult:
    source = OpenApiSource(spec)
    try:
        tools = {tool.own_name: tool for tool in await source.tools()}
        return await source.call(ToolCall(tools[name], arguments))
    finally:
        await source.aclose()


async def test_a_file_s_servers_get_no_key_unless_they_are_configured(
    api: Server, tmp_path: Path
) -> None:
    named = document(api.address)
    with pytest.raises(ConfigError, match="Set `base_url`"):
        await call(spec_of(tmp_path, named))
    assert api.seen == []
    await call(spec_of(tmp_path, named, base_url=api.address))
    await call(spec_of(tmp_path, named, headers={"User-Agent": "me"}))
    assert [headers.get("x-key") for _, headers, _ in api.seen] == [KEY, None]


async def test_a_document_s_own_host_gets_the_key_and_another_does_not(api: Server) -> None:
    with Server() as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        for address, is_own in ((api.address, True), (other.address, False)):
            Api.document = document(address)
            url = f"{api.address}/doc"
            spec = OpenApiSpec(name="a", document=url, query={"api_key": KEY})
            source = OpenApiSource(spec)
            await source.tools()
            await source.aclose()
            assert bool(source.problems) is not is_own
            if is_own:
                await call(spec)
            else:
                with pytest.raises(ConfigError, match="not where the document came from"):
                    await call(spec)
        other.shutdown()
        assert other.seen == []
    assert [path for path, _, _ in api.seen] == [f"/read?api_key={KEY}"]


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://a.example/x", ("https", "a.example", 443)),
        ("HTTPS://u:p@A.example:443", ("https", "a.example", 443)),
        ("https://good.example@evil.example/", ("https", "evil.example", 443)),
        ("https://good.example\\@evil.example/", None),
        ("https://good.example\n.evil.example/", None),
        ("/relative", None),
        ("file:///etc/passwd", None),
        ("https://a.example:x/", None),
    ],
)
def test_an_address_has_one_origin_or_none(url: str, origin: Any) -> None:
    assert parse_origin(url) == origin


HEADERS = (
    "Host", "transfer-encoding", "Content-Length", "Connection", "Cookie", "Proxy-Authorization",
    "x-key", "bad\r\nname",
)  # fmt: skip


async def test_arguments_set_no_header_that_routes_frames_or_identifies(
    api: Server, tmp_path: Path
) -> None:
    parameters = [{"in": "header", "name": n, "schema": {"type": "string"}} for n in HEADERS]
    parameters.append({"in": "header", "name": "X-Fine", "schema": {"type": "string"}})
    spec = spec_of(tmp_path, document(parameters=parameters), base_url=api.address)
    source = OpenApiSource(spec)
    [read, _] = await source.tools()
    assert list(read.input_schema["properties"]) == ["X-Fine"]
    given = dict.fromkeys(HEADERS, "evil")
    await source.call(ToolCall(read, {"X-Fine": "1", **given}))
    await source.aclose()
    [(_, headers, _)] = api.seen
    assert headers["host"] == api.address.removeprefix("http://")
    assert (headers["x-fine"], headers["x-key"]) == ("1", KEY)
    assert "evil" not in headers.values()


@pytest.mark.parametrize("name", ["api_key", "API_KEY", "api_key[]", "api.key", "Api-Key"])
async def test_no_argument_sends_a_configured_query_parameter_again(
    name: str, api: Server, tmp_path: Path
) -> None:
    free = {"in": "query", "name": "filter", "schema": {"type": "object"}}
    same = {"in": "query", "name": name, "schema": {"type": "string"}}
    value = document(parameters=[free, same])
    spec = spec_of(tmp_path, value, base_url=api.address, headers={}, query={"api_key": KEY})
    source = OpenApiSource(spec)
    [read, _] = await source.tools()
    await source.aclose()
    assert list(read.input_schema["properties"]) == ["filter"]
    with pytest.raises(InvalidArguments, match="the configuration of a sends it"):
        await call(spec, filter={name: "mine"})
    with pytest.raises(InvalidArguments, match="the configuration of a sends it"):
        await call(spec, "send", body={name: "mine"})
    await call(spec, filter={"color": "red"})
    assert [path for path, _, _ in api.seen] == [f"/read?color=red&api_key={KEY}"]


async def test_nothing_that_a_model_reads_holds_a_password_or_key(
    api: Server, tmp_path: Path
) -> None:
    base = api.address.replace("http://", "http://ann:p4ssw0rd-x@")
    refused = await call(spec_of(tmp_path, document(path="/refuse"), base_url=base))
    file = await call(spec_of(tmp_path, document(path="/file"), base_url=base))
    text = json.dumps([refused.wire, file.wire], ensure_ascii=False)
    assert refused.is_error
    assert "bad [redacted] /refuse" in text
    assert f"{api.address}/file" in text
    assert [secret for secret in (KEY, "p4ssw0rd", "\u200b") if secret in text] == []
    assert api.seen[0][1]["authorization"].startswith("Basic ")
    wrong = spec_of(tmp_path, document(), base_url="ftp://ann:p4ssw0rd-x@host")
    with pytest.raises(ConfigError) as caught:
        await call(wrong)
    assert "p4ssw0rd" not in caught.value.message


def test_an_address_is_shown_without_user_and_password() -> None:
    assert strip_credentials("https://u:p@h.example:8/x?y") == "https://h.example:8/x?y"
