"""Asking the person behind a client, in whichever way the client offers.

session era    elicitation/create, while the run waits
modern era     an `input_required` result; the client comes back with the answer
neither        the model gets the id of the run and calls `run_destructive_code`, a separate
               tool, so that the client asks for approval of that tool
"""

from __future__ import annotations

import anyio

from pegboard.core.calls import CallResult
from pegboard.core.code.consent import ConsentQuestion
from pegboard.core.code.run_report import RunReport
from pegboard.core.json import Json, JsonObject
from pegboard.errors import PegboardError
from pegboard.programs.scope import AskConsent, ConsentChannel, RunView, get_downstream

_KEY = "consent"
_ANSWER_TIMEOUT = 600.0
"""Seconds that a person has, while a client of the session era waits."""


def choose_consent(view: RunView) -> tuple[AskConsent | None, ConsentChannel]:
    """How to ask the person behind a request: now, or later and through which channel."""
    downstream = get_downstream(view)
    if downstream.channel is None or downstream.capabilities.get("elicitation") is None:
        return None, "tool"
    if downstream.era == "modern":
        return None, "client"
    if not downstream.channel.can_send_request:
        return None, "tool"

    async def ask(question: ConsentQuestion) -> bool:
        from pegboard.upstream.client_sdk import MCPError

        try:
            with anyio.fail_after(_ANSWER_TIMEOUT):
                answer = await downstream.send_request("elicitation/create", _to_params(question))
        except (MCPError, TimeoutError, PegboardError):
            return False  # no answer is no consent
        return answer.get("action") == "accept"

    return ask, "client"


def input_required(report: RunReport) -> CallResult:
    """The result that has a modern client ask its user, and call again with the answer."""
    assert report.question is not None
    request = {"method": "elicitation/create", "params": _to_params(report.question)}
    return CallResult(
        {
            "resultType": "input_required",
            "inputRequests": {_KEY: request},
            "requestState": report.run,
        }
    )


def read_decision(responses: Json) -> bool:
    """Whether the answers that a client came back with are a consent."""
    answer = responses.get(_KEY) if isinstance(responses, dict) else None
    return isinstance(answer, dict) and answer.get("action") == "accept"


def _to_params(question: ConsentQuestion) -> JsonObject:
    schema = {"type": "object", "properties": {}}
    return {"mode": "form", "message": question.text, "requestedSchema": schema}
