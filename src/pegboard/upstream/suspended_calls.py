"""A legacy server's input requests to a modern client: calls that outlive their request.

A legacy server asks in the middle of a call and waits for the answer. A modern client cannot be
sent a request; its call ends with `input_required`, and it calls again with the answers. So the
call to the server continues in the connection's own task between the client's requests:

    client                     here                          server
    tools/call  ------------>  SuspendedCall.run  -------->  tools/call
                               request_input  <------------  elicitation/create
    input_required  <--------  (inputRequests, requestState)
    tools/call + answers --->  answer         ------------>  the answer
    result  <----------------  next           <------------  result

Waiting is bounded: a person's time to answer by `inbound_router.ANSWER_TIMEOUT`, the number of
calls by `MAX_SUSPENDED_CALLS`. `requestState`, which the client echoes, is a random token. It is
valid for the same principal, the same request and this process only.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import anyio

from pegboard.core.json import Json, JsonObject
from pegboard.errors import Busy, PegboardError, UpstreamError, UpstreamUnavailable
from pegboard.upstream.client_sdk import INVALID_PARAMS, INVALID_REQUEST, MCPError
from pegboard.upstream.downstream import Downstream
from pegboard.upstream.era_translation import INPUT_REQUIRED, to_input_request
from pegboard.upstream.inbound_router import ANSWER_TIMEOUT

MAX_SUSPENDED_CALLS: Final = 1000
_TOKEN_PREFIX: Final = "pegboard."


class InputRequest:
    """Something that a server wants to know, and the answer when it has come."""

    __slots__ = ("_answer", "_answered", "entry")

    def __init__(self, entry: JsonObject) -> None:
        self.entry = entry
        """How it appears among the `inputRequests` of a result."""
        self._answered = anyio.Event()
        self._answer: JsonObject | None = None

    @property
    def is_open(self) -> bool:
        return not self._answered.is_set()

    def settle(self, answer: JsonObject | None) -> None:
        """Record the answer, `None` when there will be none; the first one counts."""
        if self.is_open:
            self._answer = answer
            self._answered.set()

    async def answer(self) -> JsonObject:
        await self._answered.wait()
        if self._answer is None:
            raise MCPError(INVALID_REQUEST, "The client did not answer.")
        return self._answer


class SuspendedCall:
    """One call to a legacy server on behalf of a modern client."""

    def __init__(self, server: str, downstream: Downstream, subject: str) -> None:
        self.token = _TOKEN_PREFIX + secrets.token_urlsafe(24)
        self.downstream = downstream
        self.subject = subject
        """What it is about: a request that resumes it must be about the same."""
        self.ended_at: float | None = None
        self._server = server
        self._scope = anyio.CancelScope()
        self._input_requests: dict[str, InputRequest] = {}
        self._changed = anyio.Event()
        self._outcome: JsonObject | PegboardError | None = None

    # The side of the server.

    async def run(self, request: Callable[[], Awaitable[JsonObject]]) -> None:
        """Make the call; runs in the connection's own task group."""
        try:
            with self._scope:
                self._outcome = await request()
        except PegboardError as exc:
            # It is raised when the client comes back.
            self._outcome = exc
        finally:
            self.ended_at = anyio.current_time()
            for input_request in self._input_requests.values():
                input_request.settle(None)
            self._changed.set()

    async def request_input(self, method: str, params: Mapping[str, Json] | None) -> JsonObject:
        """The client's answer, whenever it comes back with one."""
        key = f"{method.replace('/', '-')}-{len(self._input_requests) + 1}"
        input_request = InputRequest(to_input_request(method, params))
        self._input_requests[key] = input_request
        self._changed.set()
        try:
            return await input_request.answer()
        finally:
            # If the server stopped waiting, the client need not answer any more.
            input_request.settle(None)

    # The side of the client.

    def answer(self, responses: Mapping[str, Json]) -> None:
        """Take the answers that the client has come back with."""
        for key, response in responses.items():
            input_request = self._input_requests.get(key)
            if input_request is not None and isinstance(response, dict):
                input_request.settle(response)

    async def next(self) -> JsonObject:
        """The result, or the input that the client must give first.

        Raises:
            PegboardError: The call failed.
        """
        try:
            while self.ended_at is None:
                wanted = {k: r.entry for k, r in self._input_requests.items() if r.is_open}
                if wanted:
                    return {
                        "resultType": INPUT_REQUIRED,
                        "inputRequests": wanted,
                        "requestState": self.token,
                    }
                self._changed = anyio.Event()
                await self._changed.wait()
        except anyio.get_cancelled_exc_class():
            # The client canceled its request: nobody will come back for the result.
            self._scope.cancel()
            raise
        if isinstance(self._outcome, PegboardError):
            raise self._outcome
        if self._outcome is None:
            raise UpstreamUnavailable(
                f"{self._server} stopped before it answered. Call again.", server=self._server
            )
        return self._outcome


class SuspendedCalls:
    """The calls that wait for their clients to come back, by token."""

    def __init__(self) -> None:
        self._calls: dict[str, SuspendedCall] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def open(self, server: str, downstream: Downstream, subject: str) -> SuspendedCall:
        """A new call. Raises `Busy` when too many wait already."""
        # Results that nobody came back for are dropped here: no timer has to run for them.
        horizon = anyio.current_time() - ANSWER_TIMEOUT
        for token, call in list(self._calls.items()):
            if call.ended_at is not None and call.ended_at < horizon:
                del self._calls[token]
        if len(self._calls) >= MAX_SUSPENDED_CALLS:
            raise Busy(
                f"{MAX_SUSPENDED_CALLS} calls are already waiting for answers from their clients.",
                server=server,
            )
        call = SuspendedCall(server, downstream, subject)
        self._calls[call.token] = call
        return call

    def resume(self, token: str, downstream: Downstream, subject: str) -> SuspendedCall:
        """The call that a client continues.

        Raises:
            UpstreamError: There is none, or it is not this client's.
        """
        call = self._calls.get(token)
        principal = downstream.caller.principal
        # A stolen token must not give one principal the result of another, nor a result of one
        # tool to a call that was permitted for a different one.
        if call is None or call.downstream.caller.principal != principal or call.subject != subject:
            raise UpstreamError(
                "No call with this `requestState` is waiting here: the time to answer has passed, "
                "or the gateway was restarted. Make the call again without it.",
                code=INVALID_PARAMS,
            )
        call.downstream = downstream
        return call

    def close(self, call: SuspendedCall) -> None:
        """Forget a call whose client has got its result."""
        self._calls.pop(call.token, None)
