"""Why a connection ended, in words that an operator or a model can act on."""

from __future__ import annotations

import json
import signal

from pydantic import ValidationError

from pegboard.core.json import Json, compact
from pegboard.core.redaction import Redactor
from pegboard.core.sanitization import sanitize_text, sanitize_value
from pegboard.errors import UpstreamError, UpstreamTimeout
from pegboard.upstream.child_process import ProcessStartError
from pegboard.upstream.client_sdk import MCPError, is_connection_closed
from pegboard.upstream.transports import UpstreamTransport

_MAX_QUOTE_LENGTH = 300
MAX_CAUSE_LENGTH = 1_000
MAX_MESSAGE_LENGTH = 4_000
MAX_DATA_LENGTH = 16_000
"""Characters of an error of a server that a client and its model get to read."""


class StartTimeout(Exception):
    """It did not come up in the time it has for that."""


def describe_failure(exc: BaseException | None, wire: UpstreamTransport | None) -> str:
    """Why it ended by itself: how its process left, or what went wrong on the way to it."""
    child = wire.child if wire else None
    if child is not None and child.exit_code is not None:
        return _add_output(_describe_exit(child.exit_code), wire)
    status = wire.faults.status if wire and wire.faults else None
    if status is not None:
        return _add_output(f"answered with HTTP status {status}{_status_hint(status)}", wire)
    return _add_output(_describe_exception(exc), wire)


def sanitize_message(text: str, redactor: Redactor, limit: int = MAX_MESSAGE_LENGTH) -> str:
    """A server's own words for a model: without secrets and hidden text, and of bounded length."""
    shown = sanitize_text(redactor.message(text[: 2 * limit]))
    more = len(text) - limit
    return shown if more <= 0 else f"{shown[:limit]} … ({more:,} more characters)"


def build_server_error(exc: MCPError, server: str, redactor: Redactor) -> UpstreamError:
    """A server's own JSON-RPC error, as a client may see it."""
    return UpstreamError(
        sanitize_message(exc.message, redactor),
        server=server,
        code=exc.code,
        data=_safe_data(exc.data, redactor),
    )


def _safe_data(data: Json, redactor: Redactor) -> Json:
    if data is None:
        return None
    text = compact(data)
    if len(text) > MAX_DATA_LENGTH:
        return {"note": f"The server's data had {len(text):,} characters and is left out."}
    redacted = redactor.message(text)
    try:
        return sanitize_value(data if redacted == text else json.loads(redacted))
    except ValueError:  # a secret that ran over the end of its string
        return {"note": "The server's data held a secret and is left out."}


def build_timeout_error(server: str, method: str, limit: float, *, asked: bool) -> UpstreamTimeout:
    """That a request was not answered in time; `asked` when it is a person who did not answer."""
    why = (
        "its question to the user was not answered in time"
        if asked
        else f"it did not answer {method} within {limit:g} s"
    )
    return UpstreamTimeout(
        f"{server}: {why}. The call was cancelled; it may have taken effect, so look before you "
        f"call again.",
        server=server,
    )


def prefix_server_name(server: str, message: str) -> str:
    """A message about a server that names it, also where the words are the server's own."""
    known = message.startswith(server) and not message[len(server) : len(server) + 1].isalnum()
    return message if known else f"{server}: {message}"


def _add_output(what: str, wire: UpstreamTransport | None) -> str:
    """The cause, with what the server itself said last."""
    child = wire.child if wire else None
    if child is None:
        return what
    if child.first_stray is not None:
        what += f"; it printed on stdout what is not MCP: {child.first_stray!r}"
    if child.log.last_line is not None:
        what += f"; last on stderr: {child.log.last_line[:_MAX_QUOTE_LENGTH]!r}"
    return what


def _describe_exit(code: int) -> str:
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _status_hint(status: int) -> str:
    if status in (401, 403):
        return ": look at its `headers`, it wants a credential"
    return ": look at its `url`" if status == 404 else ""


def _describe_exception(exc: BaseException | None) -> str:
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    if exc is None or (isinstance(exc, MCPError) and is_connection_closed(exc)):
        return "closed the connection"
    if isinstance(exc, (ProcessStartError, StartTimeout)):
        return str(exc)
    if isinstance(exc, ValidationError):
        return "answered the handshake with something that is not MCP"
    if isinstance(exc, MCPError):
        return f"refused the handshake: {exc.message} ({exc.code})"
    return f"cannot be reached: {str(exc)[:_MAX_QUOTE_LENGTH].rstrip('.') or type(exc).__name__}"
