"""One request to one server and back, in all four pairs of eras; a server's tools as a `Source`.

| client | server | a request of the server to the client arrives there as |
|---|---|---|
| legacy | legacy | the server's own request, on the session that the connection serves |
| modern | modern | the server's own `input_required` result, passed through |
| legacy | modern | requests to the client; then the call is made again with the answers |
| modern | legacy | an `input_required` result; the call goes on meanwhile (`suspended_calls`) |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import anyio

from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.json import Json, JsonObject
from pegboard.core.sanitization import sanitize_prose
from pegboard.core.tools import Tool
from pegboard.errors import UpstreamError, UpstreamTimeout
from pegboard.ports import Store
from pegboard.upstream import addresses, era_translation
from pegboard.upstream.addresses import ResourceLinks
from pegboard.upstream.client_sdk import (
    URL_ELICITATION_REQUIRED,
    HeaderMap,
    MCPError,
    read_header_map,
)
from pegboard.upstream.connection import Connection, StaleConnection
from pegboard.upstream.downstream import Downstream, Owner, build_downstream
from pegboard.upstream.inbound_router import ANSWER_TIMEOUT
from pegboard.upstream.pool import ConnectionPool
from pegboard.upstream.spec import UpstreamSpec
from pegboard.upstream.suspended_calls import SuspendedCalls

MAX_INPUT_ROUNDS: Final = 10
"""How often a modern server may ask a legacy client within one call; the SDK's own bound."""
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
        """What it is about: a call taken up again must be about the same."""
        name = self.params.get("name") or self.params.get("uri")
        return f"{self.server} {self.method} {name}"


class Relay:
    """Carries requests of fronts to servers."""

    def __init__(self, pool: ConnectionPool, store: Store) -> None:
        self.pool = pool
        self.task_owners = addresses.TaskOwners(store)
        self.links = ResourceLinks()
        self._suspensions = SuspendedCalls()
        self._levels: dict[Owner, str] = {}
        self._forgetful: list[Callable[[Owner], None]] = []

    async def request(self, outgoing: UpstreamRequest, front: Downstream) -> JsonObject:
        """The server's result, as the front's era spells it.

        Raises:
            UpstreamUnavailable: the server cannot be reached, or died.
            UpstreamTimeout: it did not answer in time.
            UpstreamError: its own error, with `code` and `data` in the details.
        """
        self._end_with(front)
        try:
            result = await self._once(outgoing, front)
        except StaleConnection:  # a server that forgot our session has not seen the request
            result = await self._once(outgoing, front)
        principal = front.caller.principal
        self.links.note(principal, outgoing.server, result.get("content"))
        if outgoing.tool is not None:
            await self.task_owners.record(principal, outgoing.server, outgoing.tool, result)
        if (questions := result.get("inputRequests")) is not None:
            result = {**result, "inputRequests": sanitize_prose(questions)}
        return era_translation.translate_result(
            front.era, addresses.add_task_addresses(outgoing.server, result)
        )

    async def notify(self, method: str, params: JsonObject, front: Downstream) -> None:
        """Tell the legacy servers of this session what its client announced."""
        for spec in self.pool.servers:
            for connection in self.pool.live(spec.name, front.owner):
                if connection.era == "legacy":
                    await connection.notify(method, params)

    async def set_level(self, level: str, front: Downstream) -> None:
        """Have every server of this session log from this level on, also those not started yet."""
        self._levels[front.owner] = level
        for spec in self.pool.servers:
            for connection in self.pool.live(spec.name, front.owner):
                await connection.want_level(level, front)

    async def end_session(self, session: str) -> None:
        """Forget a front session and end the connections that served it."""
        owner = ("session", session)
        self._levels.pop(owner, None)
        for forget in self._forgetful:
            forget(owner)
        await self.pool.end_session(session)

    def when_session_ends(self, forget: Callable[[Owner], None]) -> None:
        """Have somebody told whenever a front session has ended."""
        self._forgetful.append(forget)

    def _end_with(self, front: Downstream) -> None:
        session = front.caller.session
        if front.channel is not None and session is not None and front.era == "legacy":
            front.channel.when_over(_END_SESSION_KEY, partial(self.end_session, session))

    async def _once(self, outgoing: UpstreamRequest, front: Downstream) -> JsonObject:
        async with self.pool.use(outgoing.server, front) as connection:
            level = front.log_level or (self._levels.get(front.owner) if self._levels else None)
            await connection.want_level(level, front)
            if connection.era == "modern":
                return await self._to_modern(connection, outgoing, front, level)
            return await self._to_legacy(connection, outgoing, front)

    async def _to_modern(
        self,
        connection: Connection,
        outgoing: UpstreamRequest,
        front: Downstream,
        level: str | None,
    ) -> JsonObject:
        params = outgoing.params
        pause = 0.05
        for _ in range(MAX_INPUT_ROUNDS + 1):
            result = await connection.request(
                outgoing.method,
                params,
                front,
                timeout=outgoing.timeout,
                log_level=level,
                mirrored=outgoing.mirrored,
            )
            asked = result.get("resultType") == era_translation.INPUT_REQUIRED
            if not asked or front.era == "modern" or front.channel is None:
                return result
            params = {k: v for k, v in outgoing.params.items() if k != "inputResponses"}
            if questions := result.get("inputRequests"):
                params["inputResponses"] = await _collect_answers(front, questions, outgoing.server)
            else:
                await anyio.sleep(pause)  # it only wants to be asked again
                pause = min(pause * 2, 1.0)
            if "requestState" in result:
                params["requestState"] = result["requestState"]
        raise UpstreamError(
            f"{outgoing.server} asked the user more than {MAX_INPUT_ROUNDS} times in one call.",
            server=outgoing.server,
        )

    async def _to_legacy(
        self, connection: Connection, outgoing: UpstreamRequest, front: Downstream
    ) -> JsonObject:
        try:
            if front.era == "modern" and front.can_be_asked:
                return await self._suspendable(connection, outgoing, front)
            return await connection.request(
                outgoing.method,
                outgoing.params,
                front,
                timeout=outgoing.timeout,
                mirrored=outgoing.mirrored,
            )
        except UpstreamError as exc:
            if front.era == "modern" and (asked := _to_url_request(exc, front, outgoing.params)):
                return asked
            raise

    async def _suspendable(
        self, connection: Connection, outgoing: UpstreamRequest, front: Downstream
    ) -> JsonObject:
        token = outgoing.params.get("requestState")
        if isinstance(token, str):
            call = self._suspensions.resume(token, front, outgoing.subject)
            call.answer(outgoing.params.get("inputResponses") or {})
        else:
            call = self._suspensions.open(outgoing.server, front, outgoing.subject)

            async def leg() -> JsonObject:
                with self.pool.hold(connection):
                    return await connection.request(
                        outgoing.method,
                        outgoing.params,
                        front,
                        timeout=outgoing.timeout,
                        carrier=call,
                    )

            connection.start_soon(partial(call.run, leg))
        done = True
        try:
            result = await call.next()
            done = result.get("resultType") != era_translation.INPUT_REQUIRED
            return result
        finally:
            if done:
                self._suspensions.close(call)


async def _collect_answers(
    front: Downstream, questions: Mapping[str, Json], server: str
) -> JsonObject:
    """A legacy client's answers to the questions inside a modern result.

    Raises:
        UpstreamError: the client refused one.
        UpstreamTimeout: nobody answered.
    """
    answers: JsonObject = {}
    refusals: list[MCPError] = []

    async def ask(key: str, question: JsonObject) -> None:
        try:
            params = era_translation.to_legacy_request(question, key)
            answers[key] = await front.ask(str(question.get("method")), params)
        except MCPError as exc:
            refusals.append(exc)
            everybody.cancel_scope.cancel()

    with anyio.move_on_after(ANSWER_TIMEOUT) as patience:
        async with anyio.create_task_group() as everybody:
            for key, question in questions.items():
                everybody.start_soon(ask, key, question if isinstance(question, dict) else {})
    if refusals:
        refusal = refusals[0]
        raise UpstreamError(
            refusal.message, server=server, code=refusal.code, data=refusal.data
        ) from refusal
    if patience.cancelled_caught:
        raise UpstreamTimeout(f"{server}: its question to the user was not answered in time.")
    return answers


def _to_url_request(exc: UpstreamError, front: Downstream, params: JsonObject) -> JsonObject | None:
    """A legacy server's demand that the user visits a page first, as a modern result.

    The client visits it and calls again. One who has just declined gets the error itself.
    """
    if exc.details.get("code") != URL_ELICITATION_REQUIRED:
        return None
    given = params.get("inputResponses") or {}
    declined = any(answer.get("action") != "accept" for answer in given.values())
    if declined or "url" not in (front.capabilities.get("elicitation") or {}):
        return None
    pages = (exc.details.get("data") or {}).get("elicitations") or []
    questions = {
        f"elicitation-create-{number}": era_translation.to_input_request("elicitation/create", page)
        for number, page in enumerate(pages, start=1)
    }
    if not questions:
        return None
    return {"resultType": era_translation.INPUT_REQUIRED, "inputRequests": questions}


class UpstreamSource:
    """Tools that a server carries out; which ones is set by `hold`, from its catalogue.

    The server's own name of a tool is its id without the server: `github.create_issue` is called
    `create_issue` there, whatever name clients see.
    """

    def __init__(self, spec: UpstreamSpec, relay: Relay, tools: Iterable[Tool] = ()) -> None:
        self._spec = spec
        self._relay = relay
        self.hold(tools)

    def hold(self, tools: Iterable[Tool]) -> None:
        """Take these tools in place of those held before."""
        self._tools = tuple(tools)
        self._mirrored: dict[str, tuple[Tool, HeaderMap]] = {}

    async def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def call(self, call: ToolCall) -> CallResult:
        """Run one call at the server.

        Raises:
            UpstreamError: it could not be run; a JSON-RPC error of the server has its `code` and
                `data` in the details.
        """
        tool = call.tool
        outgoing = UpstreamRequest(
            server=self._spec.name,
            method="tools/call",
            params={
                **call.params,
                "name": tool.own_name,
                "arguments": call.arguments,
            },
            timeout=tool.timeout,
            mirrored=self._headers(tool) if self._spec.transport == "http" else None,
            tool=tool.id,
        )
        front = build_downstream(call.caller, call.request, call.params)
        try:
            return CallResult(await self._relay.request(outgoing, front))
        except UpstreamError as exc:
            exc.details.setdefault("tool", tool.name)
            raise

    def _headers(self, tool: Tool) -> HeaderMap:
        """The arguments that this tool wants repeated as HTTP headers."""
        kept = self._mirrored.get(tool.id)
        if kept is None or kept[0] is not tool:  # a new listing makes new tools
            schemas = tool.definition()
            mirrored = {
                tuple(schemas.originals.get(part, part) for part in path): header
                for path, header in read_header_map(schemas.input).items()
            }
            kept = self._mirrored[tool.id] = (tool, mirrored)
        return kept[1]
