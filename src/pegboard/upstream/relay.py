"""One request to one server and back, in all four pairs of eras; a server's tools as a `Source`.

| client | server | how input that the server wants reaches the client |
|---|---|---|
| legacy | legacy | the server's own request, on the session that the connection serves |
| modern | modern | the server's own `input_required` result, passed through |
| legacy | modern | requests to the client; then the call is made again with the answers |
| modern | legacy | an `input_required` result; the call stays open (`suspended_calls`) |

The first two cases need nothing here: `inbound_router` forwards the request, and the result is
relayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import anyio

from pegboard.core.calls import CallResult, ToolCall, find_malformed_part
from pegboard.core.json import Json, JsonObject
from pegboard.core.results.shapes import disown_notes
from pegboard.core.tools import Tool
from pegboard.errors import InvalidArguments, LoginRequired, UpstreamError, UpstreamTimeout
from pegboard.ports import Store
from pegboard.upstream.addresses import ResourceLinks, build_resource_address
from pegboard.upstream.client_sdk import (
    URL_ELICITATION_REQUIRED,
    HeaderMap,
    MCPError,
    read_header_map,
)
from pegboard.upstream.connection import Connection, StaleConnection
from pegboard.upstream.downstream import Downstream, Owner, build_downstream
from pegboard.upstream.era_translation import (
    INPUT_REQUIRED,
    attribute_elicitation,
    attribute_input_requests,
    get_meta,
    to_input_request,
    to_legacy_request,
    translate_result,
)
from pegboard.upstream.inbound_router import ANSWER_TIMEOUT
from pegboard.upstream.pool import ConnectionPool
from pegboard.upstream.sign_in import SignIn, is_login_answer, without_login_answer
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.suspended_calls import SuspendedCalls
from pegboard.upstream.tasks import (
    RELATED_TASK,
    TASK_KEYS,
    TaskOwners,
    add_task_addresses,
)

MAX_INPUT_ROUNDS: Final = 10
"""How often a modern server may ask a legacy client within one call; the SDK's own bound."""
_MAX_COMPARED_LINKS: Final = 50
"""Links of one result that are compared with what other servers have."""
_END_SESSION_KEY: Final = "io.github.pegboard/upstreams"


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request for a server; `mirrored` are the arguments that it wants as HTTP headers."""

    server: str
    method: str
    params: JsonObject
    timeout: float | None = None
    mirrored: HeaderMap | None = None
    tool: str | None = None
    """The id of the tool that is called, where one is."""

    @property
    def subject(self) -> str:
        """What it is about: a request that resumes a call must be about the same."""
        name = self.params.get("name") or self.params.get("uri")
        return f"{self.server} {self.method} {name}"


class Relay:
    """Carries requests of clients to servers."""

    def __init__(self, pool: ConnectionPool, store: Store) -> None:
        self.pool = pool
        self.task_owners = TaskOwners(store)
        self.links = ResourceLinks()
        self.address_link: Callable[[str, str, Downstream], str] = lambda _server, uri, _for: uri
        """The URI under which a client gets a server's link to a resource."""
        self._suspended_calls = SuspendedCalls()
        self._log_levels: dict[Owner, str] = {}
        self._session_listeners: list[Callable[[Owner], None]] = []

    async def request(self, request: UpstreamRequest, downstream: Downstream) -> JsonObject:
        """The server's result, as the client's era spells it.

        Raises:
            UpstreamUnavailable: The server cannot be reached, or died.
            UpstreamTimeout: It did not answer in time.
            LoginRequired: It does not accept the caller's credential, or the caller has to log in.
            UpstreamError: Its own error, with `code` and `data` in the details.
            InvalidArguments: The client's answers to an earlier result are malformed.
        """
        session = downstream.caller.session
        if downstream.channel is not None and session is not None and downstream.era == "legacy":
            end_session = partial(self.end_session, session)
            downstream.channel.on_close(_END_SESSION_KEY, end_session)
        answers = request.params.get("inputResponses")
        if answers is not None and not _is_valid(answers):
            raise InvalidArguments("`inputResponses` must be an object of objects.")
        if "requestState" in request.params and is_login_answer(request.params):
            # The client had the user log in, and sends the request again with the answer.
            if (sign_in := self._build_sign_in(request.server, downstream)) is not None:
                await sign_in.resume(request.params)
            request = replace(request, params=without_login_answer(request.params))
        try:
            result = await self._send(request, downstream)
        except StaleConnection:
            # The server has not looked at the request, so sending it again is safe for any tool.
            result = await self._send(request, downstream)
        except LoginRequired as refusal:
            sign_in = self._build_sign_in(request.server, downstream)
            if sign_in is None:
                raise
            invitation = await sign_in.ask(refusal)
            result = await self._send(request, downstream) if invitation is None else invitation
        principal = downstream.caller.principal
        result = self._record_links(request.server, result, downstream)
        # Most results name no task, and this is the path of every call.
        if not TASK_KEYS.isdisjoint(result) or RELATED_TASK in get_meta(result):
            if request.tool is not None:
                await self.task_owners.record(principal, request.server, request.tool, result)
            result = add_task_addresses(request.server, result)
        return translate_result(downstream.era, result)

    def _record_links(self, server: str, result: JsonObject, downstream: Downstream) -> JsonObject:
        """Record the links of a result, and give them addresses that lead to this server."""
        content = result.get("content")
        if not isinstance(content, list):
            return result
        links = [
            at
            for at, block in enumerate(content)
            if isinstance(block, dict)
            and block.get("type") == "resource_link"
            and isinstance(block.get("uri"), str)
        ]
        if not links:
            return result
        blocks = list[Json](content)
        for number, at in enumerate(links):
            uri: str = content[at]["uri"]
            self.links.record(downstream.caller.principal, server, uri)
            # Comparing a URI with all templates takes time, and a result may have any number.
            if number < _MAX_COMPARED_LINKS:
                address = self.address_link(server, uri, downstream)
            else:
                address = build_resource_address(server, uri)
            blocks[at] = {**content[at], "uri": address}
        return {**result, "content": blocks}

    async def notify(self, method: str, params: JsonObject, downstream: Downstream) -> None:
        """Pass a client's notification on to the legacy servers of its session."""
        for spec in self.pool.servers:
            for connection in self.pool.ready_connections(spec.name, downstream.owner):
                if connection.era == "legacy":
                    await connection.notify(method, params)

    async def set_log_level(self, level: str, downstream: Downstream) -> None:
        """Have every server of this session log from this level on, also those not started yet."""
        self._log_levels[downstream.owner] = level
        for spec in self.pool.servers:
            for connection in self.pool.ready_connections(spec.name, downstream.owner):
                await connection.set_log_level(level, downstream)

    async def end_session(self, session: str) -> None:
        """Forget a client's session and end the connections that served it."""
        owner = ("session", session)
        self._log_levels.pop(owner, None)
        for listener in self._session_listeners:
            listener(owner)
        await self.pool.end_session(session)

    def on_session_end(self, listener: Callable[[Owner], None]) -> None:
        """Call a listener whenever a client's session has ended."""
        self._session_listeners.append(listener)

    def _build_sign_in(self, server: str, downstream: Downstream) -> SignIn | None:
        logins = self.pool.logins
        tokens = logins.tokens(self.pool.get_spec(server)) if logins is not None else None
        return SignIn(logins, tokens, downstream) if logins is not None and tokens else None

    async def _send(self, request: UpstreamRequest, downstream: Downstream) -> JsonObject:
        async with self.pool.use(request.server, downstream) as connection:
            # The owner costs more to find out than whether any session has set a level.
            of_session = self._log_levels.get(downstream.owner) if self._log_levels else None
            level = downstream.log_level or of_session
            await connection.set_log_level(level, downstream)
            if connection.era == "modern":
                return await self._send_to_modern(connection, request, downstream, level)
            return await self._send_to_legacy(connection, request, downstream)

    async def _send_to_modern(
        self,
        connection: Connection,
        request: UpstreamRequest,
        downstream: Downstream,
        level: str | None,
    ) -> JsonObject:
        params = request.params
        delay = 0.05
        for _ in range(MAX_INPUT_ROUNDS + 1):
            result = await connection.request(
                request.method,
                params,
                downstream,
                timeout=request.timeout,
                log_level=level,
                mirrored=request.mirrored,
            )
            result = attribute_input_requests(request.server, result)
            needs_input = result.get("resultType") == INPUT_REQUIRED
            if not needs_input or downstream.era == "modern" or downstream.channel is None:
                return result
            # Our client is legacy: ask it now, and make the call again on its behalf. Answers of an
            # earlier round are not repeated; `requestState` carries what the server made of them.
            params = {k: v for k, v in request.params.items() if k != "inputResponses"}
            if input_requests := result.get("inputRequests"):
                params["inputResponses"] = await _collect_answers(
                    downstream, input_requests, request.server
                )
            else:
                await anyio.sleep(delay)  # it only wants the call to be made again, a bit later
                delay = min(delay * 2, 1.0)
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise UpstreamError(
            f"{request.server} asked the user more than {MAX_INPUT_ROUNDS} times in one call.",
            server=request.server,
        )

    async def _send_to_legacy(
        self, connection: Connection, request: UpstreamRequest, downstream: Downstream
    ) -> JsonObject:
        try:
            if downstream.era == "modern" and downstream.can_give_input:
                return await self._send_resumable(connection, request, downstream)
            result = await connection.request(
                request.method,
                request.params,
                downstream,
                timeout=request.timeout,
                mirrored=request.mirrored,
            )
            # A legacy server does not send this, but a modern client would act on it.
            return attribute_input_requests(request.server, result)
        except UpstreamError as exc:
            pages = _attribute_pages(exc, request.server)
            if not pages or downstream.era != "modern":
                raise
            # A client that has just declined to have them visited gets the error itself. Any other
            # gets them as a modern result, has the user visit them, and calls again.
            answers = request.params.get("inputResponses")
            given = answers.values() if isinstance(answers, dict) else ()
            has_declined = any(
                not isinstance(answer, dict) or answer.get("action") != "accept" for answer in given
            )
            if has_declined or "url" not in (downstream.capabilities.get("elicitation") or {}):
                raise
            return {
                "resultType": INPUT_REQUIRED,
                "inputRequests": {
                    f"elicitation-create-{number}": to_input_request("elicitation/create", page)
                    for number, page in enumerate(pages, start=1)
                },
            }

    async def _send_resumable(
        self, connection: Connection, request: UpstreamRequest, downstream: Downstream
    ) -> JsonObject:
        """Start or resume a call of a modern client to a legacy server, up to its next result."""
        token = request.params.get("requestState")
        if isinstance(token, str):
            call = self._suspended_calls.resume(token, downstream, request.subject)
            call.answer(request.params.get("inputResponses") or {})
        else:
            call = self._suspended_calls.open(request.server, downstream, request.subject)

            async def send() -> JsonObject:
                # This outlives the client's request, whose own reservation ends with it.
                with self.pool.reserve(connection):
                    result = await connection.request(
                        request.method,
                        request.params,
                        downstream,
                        timeout=request.timeout,
                        resumable=call,
                    )
                    return attribute_input_requests(request.server, result)

            connection.start_soon(partial(call.run, send))
        is_finished = True
        try:
            result = await call.next()
            is_finished = result.get("resultType") != INPUT_REQUIRED
            return result
        finally:
            # Also after an error or a cancellation: nobody comes back for such a call.
            if is_finished:
                self._suspended_calls.close(call)


def _is_valid(answers: Json) -> bool:
    """Whether a client's answers to input requests have the form that the protocol prescribes."""
    return isinstance(answers, dict) and all(isinstance(one, dict) for one in answers.values())


async def _collect_answers(
    downstream: Downstream, input_requests: JsonObject, server: str
) -> JsonObject:
    """A legacy client's answers to the input requests of a modern result.

    Raises:
        UpstreamError: The client refused one.
        UpstreamTimeout: Nobody answered.
    """
    answers: JsonObject = {}
    refusals: list[MCPError] = []

    async def ask(key: str, input_request: JsonObject) -> None:
        try:
            params = to_legacy_request(input_request, key)
            answers[key] = await downstream.send_request(input_request["method"], params)
        except MCPError as exc:
            # Without this answer the call cannot continue, so the others are not awaited.
            refusals.append(exc)
            tasks.cancel_scope.cancel()

    with anyio.move_on_after(ANSWER_TIMEOUT) as timeout:
        async with anyio.create_task_group() as tasks:
            for key, entry in input_requests.items():
                tasks.start_soon(ask, key, entry)
    if refusals:
        refusal = refusals[0]
        raise UpstreamError(
            refusal.message, server=server, code=refusal.code, data=refusal.data
        ) from refusal
    if timeout.cancelled_caught:
        raise UpstreamTimeout(f"{server}: its question to the user was not answered in time.")
    return answers


def _attribute_pages(exc: UpstreamError, server: str) -> list[JsonObject]:
    """The pages that a user must visit first, if that is what a legacy server's error says.

    The server's name is added to them, and to the error.
    """
    data = exc.details.get("data")
    if exc.details.get("code") != URL_ELICITATION_REQUIRED or not isinstance(data, dict):
        return []
    given = data.get("elicitations")
    pages = [
        attribute_elicitation(server, page)
        for page in (given if isinstance(given, list) else ())
        if isinstance(page, dict)
    ]
    exc.details["data"] = {**data, "elicitations": pages}
    return pages


class UpstreamSource:
    """Tools that a server runs; `set_tools` says which, from its catalog.

    The server's own name of a tool is its id without the server: `github.create_issue` is called
    `create_issue` there, whichever name clients see. `on_first_answer` is called with the server's
    name after the first call that it answered.
    """

    def __init__(
        self,
        spec: UpstreamSpec,
        relay: Relay,
        tools: Iterable[Tool] = (),
        *,
        on_first_answer: Callable[[str], None] | None = None,
    ) -> None:
        self.spec = spec
        self._relay = relay
        self._on_first_answer = on_first_answer
        self.set_tools(tools)

    def set_tools(self, tools: Iterable[Tool]) -> None:
        """Take these tools in place of those before."""
        self._tools = tuple(tools)
        self._header_maps: dict[str, tuple[Tool, HeaderMap]] = {}

    async def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def call(self, call: ToolCall) -> CallResult:
        """Run one call at the server.

        Raises:
            UpstreamError: It could not be run; a JSON-RPC error of the server has its `code` and
                `data` in the details.
        """
        tool = call.tool
        request = UpstreamRequest(
            server=self.spec.name,
            method="tools/call",
            params={
                **call.params,
                "name": tool.own_name,
                "arguments": call.arguments,
            },
            timeout=tool.timeout,
            mirrored=self._get_header_map(tool) if self.spec.transport == "http" else None,
            tool=tool.id,
        )
        downstream = build_downstream(call.caller, call.request, call.params)
        try:
            wire = await self._relay.request(request, downstream)
            # Every layer reads the result, and relies on it being valid MCP.
            if (fault := find_malformed_part(wire)) is not None:
                raise UpstreamError(
                    f"{self.spec.name} answered with a malformed result: {fault}. The call may "
                    "have taken effect.",
                    server=self.spec.name,
                )
        except (UpstreamError, LoginRequired) as exc:
            exc.details.setdefault("tool", tool.name)
            raise
        if self._on_first_answer is not None:
            notify, self._on_first_answer = self._on_first_answer, None
            notify(self.spec.name)
        return CallResult(disown_notes(wire))

    def _get_header_map(self, tool: Tool) -> HeaderMap:
        """The arguments that this tool wants repeated as HTTP headers."""
        cached = self._header_maps.get(tool.id)
        if cached is None or cached[0] is not tool:  # a new listing makes new tools
            schemas = tool.definition()
            # Parameters may be shown under other names; the call that is sent has the originals.
            mirrored = {
                tuple(schemas.originals.get(part, part) for part in path): header
                for path, header in read_header_map(schemas.input).items()
            }
            cached = self._header_maps[tool.id] = (tool, mirrored)
        return cached[1]
