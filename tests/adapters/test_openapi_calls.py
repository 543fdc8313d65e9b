"""Calls of an OpenAPI source against a real server on the loopback."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import anyio
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from pegboard.adapters.openapi.document import OpenApiSpec
from pegboard.adapters.openapi.openapi_source import OpenApiSource
from pegboard.core.calls import CallResult, ToolCall
from pegboard.errors import (
    ConfigError,
    InvalidArguments,
    ToolNotFound,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnavailable,
)

pytestmark = pytest.mark.anyio
LIBRARY = Path(__file__).parent / "library.yaml"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def echo(request: Request) -> Response:
    """What arrived, as the server saw it."""
    seen: dict[str, Any] = {
        "method": request.method,
        "path": request.scope["raw_path"].decode().partition("?")[0],
        "query": parse_qsl(request.url.query),
        "cookies": request.cookies,
        "headers": {k: v for k, v in request.headers.items() if k.startswith(("x-", "auth"))},
        "type": request.headers.get("content-type"),
        "body": (await request.body()).decode(),
    }
    return JSONResponse(seen)


async def status(request: Request) -> Response:
    code = int(request.path_params["code"])
    headers = {"retry-after": "7", "location": "/v1/books"} if code in (301, 429, 503) else {}
    if code == 204:
        return Response(status_code=204)
    if code == 299:
        return JSONResponse([1, 2])
    if code == 298:
        return Response("{broken", media_type="application/json")
    if code == 404:
        return PlainTextResponse("x" * 5000, status_code=404)
    return JSONResponse({"detail": "no"}, status_code=code, headers=headers)


async def slow(request: Request) -> Response:
    await anyio.sleep_forever()
    raise AssertionError


async def cover(request: Request) -> Response:
    return Response(b"\x89PNG", media_type="image/png")


async def archive(request: Request) -> Response:
    return Response(b"PK\x03", media_type="application/zip")


async def openapi(request: Request) -> Response:
    if request.headers.get("x-doc") == "no":
        return Response(status_code=403)
    seen_headers.append(dict(request.headers))
    return Response(LIBRARY.read_bytes(), media_type="application/yaml")


seen_headers: list[dict[str, str]] = []
APP = Starlette(
    routes=[
        Route("/openapi.yaml", openapi),
        Route("/v1/status/{code}", status),
        Route("/v1/slow", slow),
        Route("/v1/cover", cover),
        Route("/v1/archive", archive),
        Route("/{rest:path}", echo, methods=["GET", "POST", "PUT", "DELETE"]),
    ]
)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server on a free port; its socket listens before anybody connects."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            APP, log_level="error", ws="none", lifespan="off", timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join(10)


@pytest.fixture
async def source(address: str) -> AsyncIterator[OpenApiSource]:
    spec = OpenApiSpec(
        name="library",
        document=str(LIBRARY),
        base_url=f"{address}/v1",
        headers={"Authorization": "Bearer s3cret"},
        query={"api_key": "k3y"},
        cookies={"sid": "c00kie"},
    )
    opened = OpenApiSource(spec)
    yield opened
    await opened.aclose()


async def call(source: OpenApiSource, name: str, **arguments: Any) -> CallResult:
    tools = {tool.id: tool for tool in await source.tools()}
    return await source.call(ToolCall(tools[f"library.{name}"], arguments))


async def test_every_argument_arrives_in_its_place(source: OpenApiSource) -> None:
    result = await call(
        source,
        "listBooks",
        author="Ä & B",
        tag=["a", "b"],
        ids=[1, 2],
        filter={"lang": "de", "new": True},
        top=5,
        sort={"by": "title"},
        shelf="top; x=1",
        **{"X-Trace": "t-1"},
    )
    seen = result.structured
    assert (seen["method"], seen["path"]) == ("GET", "/v1/books")
    assert seen["query"] == [
        ["author", "Ä & B"],
        ["tag", "a"],
        ["tag", "b"],
        ["ids", "1,2"],
        ["filter[lang]", "de"],
        ["filter[new]", "true"],
        ["$top", "5"],
        ["sort", '{"by":"title"}'],
        ["api_key", "k3y"],
    ]
    assert seen["headers"] == {"x-trace": "t-1", "authorization": "Bearer s3cret"}
    assert seen["cookies"] == {"shelf": "top%3B%20x%3D1", "sid": "c00kie"}
    assert json.loads(result.content[0]["text"]) == seen


async def test_a_spread_body_is_put_together_again(source: OpenApiSource) -> None:
    seen = (await call(source, "addBook", title="T", sequel={"id": 1, "title": "U"})).structured
    assert (seen["method"], seen["type"]) == ("POST", "application/json")
    assert json.loads(seen["body"]) == {"title": "T", "sequel": {"id": 1, "title": "U"}}


async def test_whole_form_and_text_bodies(source: OpenApiSource) -> None:
    whole = (await call(source, "replaceBook", id="1", body={"id": 1})).structured
    assert json.loads(whole["body"]) == {"id": 1}
    form = (await call(source, "login", user="me & you", remember=True)).structured
    assert form["type"] == "application/x-www-form-urlencoded"
    assert parse_qsl(form["body"]) == [("user", "me & you"), ("remember", "true")]
    text = (await call(source, "addNote", body="plain")).structured
    assert (text["type"], text["body"]) == ("text/plain", "plain")


async def test_an_optional_body_is_left_out(source: OpenApiSource) -> None:
    seen = (await call(source, "login")).structured
    assert (seen["type"], seen["body"]) == (None, "")


async def test_a_value_cannot_leave_its_place_in_the_path(source: OpenApiSource) -> None:
    seen = (
        await call(source, "getCopy", id="../admin?x=1#y", copy="{id}", query_id="q")
    ).structured
    assert seen["path"] == "/v1/books/..%2Fadmin%3Fx%3D1%23y/copies/%7Bid%7D"
    assert seen["query"][0] == ["id", "q"]


@pytest.mark.parametrize("value", ["..", ".", ""])
async def test_dots_alone_are_refused_in_a_path(source: OpenApiSource, value: str) -> None:
    with pytest.raises(InvalidArguments, match="cannot be"):
        await call(source, "get_book", id=value)


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "ü"])
async def test_a_header_takes_one_plain_line(source: OpenApiSource, value: str) -> None:
    with pytest.raises(InvalidArguments, match="goes into a header") as caught:
        await call(source, "listBooks", **{"X-Trace": value})
    assert caught.value.details["field"] == "X-Trace"


async def test_a_required_argument_that_is_missing_is_named(source: OpenApiSource) -> None:
    with pytest.raises(InvalidArguments, match="'id' is required"):
        await call(source, "get_book")


async def test_a_list_travels_inside_an_object(source: OpenApiSource) -> None:
    result = await call(source, "status", code=299)
    assert result.structured == {"result": [1, 2]}


async def test_empty_and_broken_answers_are_text(source: OpenApiSource) -> None:
    assert (await call(source, "status", code=204)).output == "204 No Content"
    assert (await call(source, "status", code=298)).output == "{broken"


async def test_images_and_files_are_kept_as_they_are(source: OpenApiSource) -> None:
    (image,) = (await call(source, "cover")).content
    assert image == {"type": "image", "data": "iVBORw==", "mimeType": "image/png"}
    (file,) = (await call(source, "archive")).content
    assert file["resource"]["mimeType"] == "application/zip"
    assert file["resource"]["blob"] == "UEsD"
    assert "k3y" not in file["resource"]["uri"]


@pytest.mark.parametrize("code", [400, 401, 409, 422, 500])
async def test_a_refusal_is_a_result_with_status_and_body(source: OpenApiSource, code: int) -> None:
    result = await call(source, "status", code=code)
    assert result.is_error
    error = result.structured["error"]
    assert (error["status"], error["body"]) == (code, {"detail": "no"})
    assert result.content[0]["text"].startswith(f"GET /status/{{code}} was answered with {code}")
    assert '{"detail":"no"}' in result.content[0]["text"]


async def test_waiting_and_redirects_are_said(source: OpenApiSource) -> None:
    assert (await call(source, "status", code=429)).structured["error"]["retry_after"] == 7
    moved = await call(source, "status", code=301)
    assert moved.is_error
    assert "points to /v1/books; redirects are not followed" in moved.output["error"]["message"]


async def test_a_long_refusal_says_how_much_was_cut(source: OpenApiSource) -> None:
    text = (await call(source, "status", code=404)).content[0]["text"]
    assert text.endswith("… (1000 more characters)")


@pytest.mark.parametrize("code", [502, 503, 504])
async def test_an_api_that_is_away_is_an_error_of_the_upstream(
    source: OpenApiSource, code: int
) -> None:
    with pytest.raises(UpstreamUnavailable, match=str(code)) as caught:
        await call(source, "status", code=code)
    assert caught.value.details["status"] == code
    if code == 503:
        assert caught.value.details["retry_after"] == 7


async def test_no_answer_in_time(source: OpenApiSource) -> None:
    tools = {tool.name: tool for tool in await source.tools()}
    with anyio.fail_after(5), pytest.raises(UpstreamTimeout, match=r"within 0\.05 seconds"):
        await source.call(ToolCall(replace(tools["slow"], timeout=0.05), {}))


async def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    spec = OpenApiSpec(
        name="library",
        document=str(LIBRARY),
        base_url=f"http://127.0.0.1:{port}",
        query={"api_key": "k3y"},
    )
    source = OpenApiSource(spec)
    with pytest.raises(UpstreamUnavailable, match="library cannot be reached") as caught:
        await call(source, "slow")
    assert "k3y" not in str(caught.value)
    await source.aclose()


async def test_an_answer_without_end_is_not_read(address: str) -> None:
    spec = OpenApiSpec(
        name="library", document=str(LIBRARY), base_url=f"{address}/v1", max_bytes=100
    )
    source = OpenApiSource(spec)
    with pytest.raises(UpstreamError, match="more than 100 bytes"):
        await call(source, "status", code=404)
    await source.aclose()


async def test_the_document_may_be_at_an_address_which_gets_no_credentials(address: str) -> None:
    seen_headers.clear()
    spec = OpenApiSpec(
        name="library",
        document=f"{address}/openapi.yaml",
        base_url="https://api.example.org",
        headers={"Authorization": "s3cret"},
    )
    source = OpenApiSource(spec)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(source.tools)
    assert len(await source.tools()) == 13
    (headers,) = seen_headers  # read once, also when five ask at once
    assert "authorization" not in headers
    await source.aclose()


async def test_a_document_on_the_apis_own_host_is_read_with_its_credentials(address: str) -> None:
    spec = OpenApiSpec(
        name="library",
        document=f"{address}/openapi.yaml",
        base_url=f"{address}/v1",
        headers={"X-Doc": "no"},
    )
    source = OpenApiSource(spec)
    with pytest.raises(ConfigError, match="403 Forbidden"):
        await source.tools()
    await source.aclose()


async def test_without_an_address_the_configuration_must_say_it(tmp_path: Path) -> None:
    path = tmp_path / "api.json"
    path.write_text('{"openapi": "3.1.0", "paths": {"/x": {"get": {}}}}')
    source = OpenApiSource(OpenApiSpec(name="library", document=str(path)))
    with pytest.raises(ConfigError, match="Set `base_url` for this source"):
        await call(source, "get_x")


async def test_a_tool_of_another_source_is_not_known(source: OpenApiSource) -> None:
    (tool, *_) = await source.tools()
    with pytest.raises(ToolNotFound):
        await source.call(ToolCall(replace(tool, id="other.thing"), {}))
    assert next(p.operation for p in source.problems) == "upload"
