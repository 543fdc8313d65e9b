"""`OpenApiSource`: an API as a source of tools, over one HTTP client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import httpx2

from pegboard.adapters.openapi.document import (
    ApiDocument,
    OpenApiSpec,
    parse_openapi,
    read_openapi_file,
    strip_credentials,
)
from pegboard.adapters.openapi.http_messages import (
    Request,
    Response,
    build_request,
    credential_problem,
    response_to_result,
)
from pegboard.adapters.openapi.operations import (
    Operation,
    OperationProblem,
    operation_to_tool,
    parse_operations,
)
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.redaction import Redactor
from pegboard.core.tools import Tool
from pegboard.errors import (
    ConfigError,
    ToolNotFound,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnavailable,
)

if TYPE_CHECKING:
    from pegboard.ports import Source


class OpenApiSource:
    """The operations of an OpenAPI document as tools. The document is read on first use.

    Redirects are not followed, since they could take credentials elsewhere.
    """

    def __init__(self, spec: OpenApiSpec, *, client: httpx2.AsyncClient | None = None) -> None:
        self.spec = spec
        self.problems: tuple[OperationProblem, ...] = ()
        """Operations that were skipped, known once the document is read."""
        self._client = client
        self._redactor = Redactor(spec.secrets)
        self._lock = anyio.Lock()
        self._tools: tuple[Tool, ...] | None = None
        self._operations: dict[str, Operation] = {}

    async def tools(self) -> Sequence[Tool]:
        """All operations as tools.

        Raises:
            ConfigError: The document cannot be read or is not OpenAPI 3.
            UpstreamError: The URL of the document does not answer.
        """
        async with self._lock:  # concurrent first uses must not fetch the document twice
            if self._tools is None:
                found, problems = parse_operations(await self._load_document(), self.spec)
                # Listed anyway, so that a call can say what has to be configured.
                untrusted = [
                    OperationProblem(self.spec.name, operation.name, reason)
                    for operation in found
                    if (reason := credential_problem(operation, self.spec))
                ]
                self.problems = (*problems, *untrusted)
                self._tools = tuple(operation_to_tool(o, self.spec) for o in found)
                names = (tool.own_name for tool in self._tools)
                self._operations = dict(zip(names, found, strict=True))
            return self._tools

    async def call(self, call: ToolCall) -> CallResult:
        """Send the request of a call.

        Raises:
            InvalidArguments: A value cannot be written where it belongs.
            UpstreamError: The API cannot be reached, or does not answer in time.
        """
        await self.tools()
        operation = self._operations.get(call.tool.own_name)
        if operation is None:
            raise ToolNotFound(call.tool.name)
        request = build_request(operation, call.arguments, self.spec)
        request_line = operation.request_line
        response = await self._send(request, request_line, call.tool.timeout or self.spec.timeout)
        return response_to_result(
            response,
            request_line=request_line,
            source=self.spec.name,
            uri=strip_credentials(request.url.partition("?")[0]),
            redactor=self._redactor,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client:
            await self._client.aclose()

    async def _load_document(self) -> ApiDocument:
        address = self.spec.document
        if not address.lower().startswith(("http://", "https://")):
            return await anyio.to_thread.run_sync(read_openapi_file, Path(address))
        headers = {"Accept": "application/json, application/yaml;q=0.9, */*;q=0.5"}
        if self.spec.base_url and self.spec.trusts(address):
            headers |= self.spec.headers  # credentials are for the API: no other host gets them
        response = await self._send(
            Request("GET", address, headers), "its OpenAPI document", self.spec.timeout
        )
        if response.status != 200:
            raise ConfigError(
                f"{self.spec.name}: {strip_credentials(address)} was answered with "
                f"{response.status_line}.",
                source=self.spec.name,
            )
        read = await anyio.to_thread.run_sync(
            parse_openapi, response.text, strip_credentials(address)
        )
        return replace(read, origin=address)

    async def _send(self, request: Request, subject: str, timeout: float) -> Response:
        name = self.spec.name
        try:
            with anyio.fail_after(timeout):
                return await self._exchange(request)
        except (TimeoutError, httpx2.TimeoutException) as exc:
            raise UpstreamTimeout(
                f"{name} did not answer {subject} within {timeout:g} seconds.", server=name
            ) from exc
        except (httpx2.TransportError, httpx2.DecodingError) as exc:
            raise UpstreamUnavailable(
                f"{name} cannot be reached for {subject}: {type(exc).__name__}.", server=name
            ) from exc
        except httpx2.InvalidURL as exc:
            raise UpstreamError(
                f"{name}: {subject} does not give a valid URL.", server=name
            ) from exc

    async def _exchange(self, request: Request) -> Response:
        """Send, and read the response up to its limit."""
        # No timeout of its own: `fail_after` bounds the whole exchange, not each read.
        client = self._client = self._client or httpx2.AsyncClient(timeout=None)
        async with client.stream(
            request.method, request.url, headers=request.headers, content=request.content
        ) as answer:
            # Read in parts, so that a response over the limit is not in memory first.
            parts: list[bytes] = []
            size = 0
            async for part in answer.aiter_bytes():
                size += len(part)
                if size > self.spec.max_bytes:
                    raise UpstreamError(
                        f"{self.spec.name} answered with more than {self.spec.max_bytes:,} bytes, "
                        f"the limit that `upstreams.max_message_bytes` sets. Ask for less, or "
                        f"raise it.",
                        server=self.spec.name,
                    )
                parts.append(part)
            kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
            return Response(
                status=answer.status_code,
                media_type=kind,
                charset=answer.charset_encoding or "utf-8",
                body=b"".join(parts),
                location=answer.headers.get("location"),
                retry_after=answer.headers.get("retry-after"),
            )


if TYPE_CHECKING:
    _: type[Source] = OpenApiSource
