"""Why a connection ended or a request failed, in words that an operator or a model can act on.

The server's own words reach a model, so they are bounded in length, and free of secrets and hidden
text.
"""

from __future__ import annotations

import json
import re
import signal

from httpx2 import HTTPStatusError
from pydantic import ValidationError

from pegboard.core.json import Json, compact
from pegboard.core.redaction import Redactor
from pegboard.core.sanitization import sanitize_text, sanitize_value
from pegboard.errors import LoginRequired, NotPermitted, UpstreamError, UpstreamTimeout
from pegboard.upstream.child_process import ProcessStartError
from pegboard.upstream.client_sdk import MCPError, is_connection_closed
from pegboard.upstream.transports import UpstreamTransport

_MAX_QUOTE_LENGTH = 300
MAX_CAUSE_LENGTH = 1_000
MAX_MESSAGE_LENGTH = 4_000
MAX_DATA_LENGTH = 16_000
"""How many characters of a server's error a client and its model see."""


class StartTimeout(Exception):
    """A server was not ready within its `start_timeout`."""


def describe_failure(exc: BaseException | None, transport: UpstreamTransport | None) -> str:
    """Why a connection ended by itself; follows the name of the server.

    The exit code of a process is more useful than the error that followed from it, and so is an
    HTTP status. The last line on stderr is often the most useful of all, so it is always quoted.
    """
    process = transport.process if transport else None
    status, _ = find_http_error(exc, transport)
    code = process.exit_code if process is not None else None
    if code is not None and code < 0:
        try:
            cause = f"was ended by {signal.Signals(-code).name}"
        except ValueError:  # one that this platform has no name for
            cause = f"was ended by signal {-code}"
    elif code is not None:
        cause = f"exited with code {code}"
    elif status is not None:
        cause = f"answered with HTTP status {status}"
        if status in (401, 403):
            cause += ": check its `headers`, it requires a credential"
        elif status == 404:
            cause += ": check its `url`"
    else:
        cause = _describe_exception(exc)
    if process is not None and process.first_stray_line is not None:
        cause += f"; it printed text on stdout that is not MCP: {process.first_stray_line!r}"
    if process is not None and process.log.last_line is not None:
        cause += f"; last line on stderr: {process.log.last_line[:_MAX_QUOTE_LENGTH]!r}"
    return cause


def find_http_error(
    exc: BaseException | None, transport: UpstreamTransport | None
) -> tuple[int | None, str | None]:
    """The HTTP status that ended a connection, and its challenge."""
    if transport is not None and transport.http_error is not None and transport.http_error.status:
        return transport.http_error.status, transport.http_error.challenge
    exc = _first_cause(exc)
    if isinstance(exc, HTTPStatusError):
        return exc.response.status_code, exc.response.headers.get("www-authenticate")
    return None, None


def build_refusal(
    server: str, status: int | None, challenge: str | None, *, can_log_in: bool = False
) -> LoginRequired | NotPermitted | None:
    """The error for a status that is about the caller's credential; `None` for any other.

    `can_log_in` says whether a login could help; otherwise its credential is in the configuration.
    """
    if status == 401 or (status == 403 and "insufficient_scope" in (challenge or "")):
        if can_log_in:
            advice = f"{server} needs a login: run `pegboard login {server}`."
        else:
            advice = (
                f"{server} requires a credential, and answered with HTTP status {status}: check "
                f"its `headers`."
            )
        return LoginRequired(
            advice,
            challenge=challenge,
            server=server,
        )
    if status == 403:
        return NotPermitted(
            f"{server} does not permit this with the credential it got (HTTP status 403).",
            server=server,
        )
    return None


def _first_cause(exc: BaseException | None) -> BaseException | None:
    # Task groups of the SDK wrap what happened, sometimes twice; the first one is the cause.
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    return exc


def _describe_exception(exc: BaseException | None) -> str:
    exc = _first_cause(exc)
    if exc is None or (isinstance(exc, MCPError) and is_connection_closed(exc)):
        return "closed the connection"
    if isinstance(exc, (ProcessStartError, StartTimeout)):
        return str(exc)
    if isinstance(exc, ValidationError):
        return "answered the handshake with something that is not MCP"
    if isinstance(exc, MCPError):
        return f"refused the handshake: {exc.message} ({exc.code})"
    # The number of a system error says nothing that its text does not.
    text = re.sub(r"\[Errno -?\d+\] ", "", str(exc))[:_MAX_QUOTE_LENGTH]
    return f"cannot be reached: {text.rstrip('.') or type(exc).__name__}"


def sanitize_message(text: str, redactor: Redactor, limit: int = MAX_MESSAGE_LENGTH) -> str:
    """A server's own words for a model: without secrets and hidden text, and of bounded length."""
    # Twice the limit: a secret that truncation would split is still recognized.
    shown = sanitize_text(redactor.message(text[: 2 * limit]))
    more = len(text) - limit
    return shown if more <= 0 else f"{shown[:limit]} … ({more:,} more characters)"


def build_server_error(exc: MCPError, server: str, redactor: Redactor) -> UpstreamError:
    """A server's own JSON-RPC error, as a client may see it."""
    data: Json = exc.data
    if data is not None:
        # As text: a secret may be anywhere in it, also in a key.
        text = compact(data)
        if len(text) > MAX_DATA_LENGTH:
            data = {"note": f"The server's data had {len(text):,} characters and is left out."}
        else:
            redacted = redactor.message(text)
            try:
                data = sanitize_value(data if redacted == text else json.loads(redacted))
            except ValueError:  # a secret that ran over the end of its string
                data = {"note": "The server's data held a secret and is left out."}
    return UpstreamError(
        sanitize_message(exc.message, redactor), server=server, code=exc.code, data=data
    )


def build_timeout_error(
    server: str, method: str, limit: float, *, waits_for_input: bool
) -> UpstreamTimeout:
    """The error of a request that timed out: waiting for the server, or for a person's input."""
    why = (
        "its question to the user was not answered in time"
        if waits_for_input
        else f"it did not answer {method} within {limit:g} s"
    )
    return UpstreamTimeout(
        f"{server}: {why}. The call was canceled; it may have taken effect, so check before you "
        f"call again.",
        server=server,
    )


def prefix_server_name(server: str, message: str) -> str:
    """A message about a server that names it, also where the words are the server's own."""
    # Our own messages already start with the name. `github ...` does not start with the name `git`.
    names_it = message.startswith(server) and not message[len(server) : len(server) + 1].isalnum()
    return message if names_it else f"{server}: {message}"
