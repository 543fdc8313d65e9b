"""A legacy server's questions to a modern client: calls that outlive the request that began them.

A legacy server asks in the middle of a call and waits for the answer. A modern client is never
asked; a call ends with `input_required`, and the client calls again with the answers. So the call
to the server goes on in the connection's own task while the client is away:

    client                     here                          server
    tools/call  ------------>  SuspendedCall.run  -------->  tools/call
                               ask            <------------  elicitation/create
    input_required  <--------  (questions, requestState)
    tools/call + answers --->  answer         ------------>  the answer
    result  <----------------  next           <------------  result

What waits is bounded: the person's time by `switchboard.ANSWER_TIME`, the calls by `LIMIT`. The
state that the client echoes is a random token, good for its owner, this request and this process
only.
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
_PREFIX: Final = "pegboard."


class InputRequest:
    """One thing a server wants to know, and the answer when it has come."""

    __slots__ = ("_answer", "_answered", "wire")

    def __init__(self, wire: JsonObject) -> None:
        self.wire = wire
        self._answered = anyio.Event()
        self._answer: JsonObject | None = None

    @property
    def is_open(self) -> bool:
        return not self._answered.is_set()

    def settle(self, answer: JsonObject | None) -> None:
        """Record the answer; `None` when there will be none."""
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

    def __init__(self, server: str, front: Downstream, subject: str) -> None:
        self.token = _PREFIX + secrets.token_urlsafe(24)
        self.front = front
        self.subject = subject
        self.over_since: float | None = None
        self._server = server
        self._scope = anyio.CancelScope()
        self._questions: dict[str, InputRequest] = {}
        self._wake = anyio.Event()
        self._outcome: JsonObject | PegboardError | None = None

    async def run(self, request: Callable[[], Awaitable[JsonObject]]) -> None:
        """Carry the call out; runs in the connection's own task group."""
        try:
            with self._scope:
                self._outcome = await request()
        except PegboardError as exc:
            self._outcome = exc
        finally:
            self.over_since = anyio.current_time()
            for question in self._questions.values():
                question.settle(None)
            self._wake.set()

    async def ask(self, method: str, params: Mapping[str, Json] | None) -> JsonObject:
        """The client's answer to a question, whenever it comes back with one."""
        key = f"{method.replace('/', '-')}-{len(self._questions) + 1}"
        question = self._questions[key] = InputRequest(to_input_request(method, params))
        self._wake.set()
        try:
            return await question.answer()
        finally:
            question.settle(None)  # a server that no longer waits needs no answer

    def belongs_to(self, front: Downstream, subject: str) -> bool:
        """Whether a request that echoes our token may take this call up."""
        return self.front.caller.principal == front.caller.principal and self.subject == subject

    def answer(self, responses: Mapping[str, Json]) -> None:
        """Take the answers that the client has come back with."""
        for key, response in responses.items():
            question = self._questions.get(key)
            if question is not None and isinstance(response, dict):
                question.settle(response)

    async def next(self) -> JsonObject:
        """The result, or what the client must answer first.

        Raises:
            PegboardError: what became of the call.
        """
        try:
            while self.over_since is None:
                if wanted := self._open_questions():
                    return self._input_required(wanted)
                self._wake = anyio.Event()
                await self._wake.wait()
        except anyio.get_cancelled_exc_class():
            self._scope.cancel()
            raise
        if isinstance(self._outcome, PegboardError):
            raise self._outcome
        if self._outcome is None:
            raise UpstreamUnavailable(
                f"{self._server} stopped before it answered. Call again.", server=self._server
            )
        return self._outcome

    def _open_questions(self) -> dict[str, JsonObject]:
        return {key: q.wire for key, q in self._questions.items() if q.is_open}

    def _input_required(self, questions: dict[str, JsonObject]) -> JsonObject:
        return {
            "resultType": INPUT_REQUIRED,
            "inputRequests": questions,
            "requestState": self.token,
        }


class SuspendedCalls:
    """The calls that wait for their clients to come back."""

    def __init__(self) -> None:
        self._calls: dict[str, SuspendedCall] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def open(self, server: str, front: Downstream, subject: str) -> SuspendedCall:
        """A new call. Raises `Busy` when too many wait already."""
        self._forget_abandoned()
        if len(self._calls) >= MAX_SUSPENDED_CALLS:
            raise Busy(
                f"{MAX_SUSPENDED_CALLS} calls wait for answers of their clients already.",
                server=server,
            )
        call = SuspendedCall(server, front, subject)
        self._calls[call.token] = call
        return call

    def resume(self, token: str, front: Downstream, subject: str) -> SuspendedCall:
        """The call that a client takes up again.

        Raises:
            UpstreamError: there is none, or it is not this client's.
        """
        call = self._calls.get(token)
        if call is None or not call.belongs_to(front, subject):
            raise UpstreamError(
                "This `requestState` belongs to no call that waits here: the time to answer is "
                "over, or the gateway was restarted. Make the call again without it.",
                code=INVALID_PARAMS,
            )
        call.front = front
        return call

    def _forget_abandoned(self) -> None:
        """Drop results that nobody has come back for."""
        horizon = anyio.current_time() - ANSWER_TIMEOUT
        for token, call in list(self._calls.items()):
            if call.over_since is not None and call.over_since < horizon:
                del self._calls[token]

    def close(self, call: SuspendedCall) -> None:
        """Forget a call whose client has got its result."""
        self._calls.pop(call.token, None)
