"""Short copies of arguments and error messages, for the history of calls on the dashboard.

A copy is bounded, whatever a caller sends: the history holds thousands of them. It still contains
secrets, which a `Redactor` removes before anybody sees it. So a text is either long enough for a
secret in it to be recognized, or left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pegboard.core.json import Json, JsonObject

if TYPE_CHECKING:
    from pegboard.core.events import CallFinished, CallRejected
    from pegboard.core.redaction import Redactor

_MAX_STORED = 2_000
"""Characters of one text, and of all texts of one call together."""
_MAX_ITEMS = 30
_MAX_DEPTH = 5
_MAX_SHOWN = 300
"""Characters of one text that are shown."""
_OMITTED = "…"


def preview_arguments(arguments: object) -> JsonObject | None:
    """A bounded copy of the arguments of a call; `None` if they are not an object."""
    if not isinstance(arguments, dict):
        return None
    return cast("JsonObject", _Copy().value(arguments, 0))  # pyright: ignore[reportUnknownArgumentType] JSON


def preview_message(message: str) -> str:
    """A bounded copy of an error message."""
    return message[:_MAX_STORED]


def redact_preview(
    call: CallFinished | CallRejected, redactor: Redactor
) -> tuple[JsonObject | None, str | None]:
    """The arguments and the message of a call without secrets, and with long texts cut."""
    arguments = None if call.preview is None else _cut(redactor.value(call.preview))
    message = None if call.message is None else _cut_text(redactor.text(call.message))
    return cast("JsonObject | None", arguments), message


@dataclass(slots=True)
class _Copy:
    """One bounded copy: how much more fits."""

    characters: int = _MAX_STORED
    items: int = _MAX_ITEMS

    def value(self, value: Json, depth: int) -> Json:
        self.items -= 1
        if isinstance(value, str):
            return self._text(value)
        # Concrete types, which JSON has: this runs on every call, and abstract ones are slow.
        if isinstance(value, dict):
            if depth == _MAX_DEPTH:
                return _OMITTED
            copied: JsonObject = {}
            for name, member in value.items():
                if self.items <= 0:
                    copied[_OMITTED] = _OMITTED
                    break
                copied[self._text(str(name))] = self.value(member, depth + 1)
            return copied
        if isinstance(value, list):
            if depth == _MAX_DEPTH:
                return _OMITTED
            members: list[Json] = []
            for member in value:
                if self.items <= 0:
                    members.append(_OMITTED)
                    break
                members.append(self.value(member, depth + 1))
            return members
        if value is None or isinstance(value, bool | float):
            return value
        # A whole number can have any number of digits. Anything else is no JSON.
        is_short = isinstance(value, int) and value.bit_length() <= 64
        return value if is_short else _OMITTED

    def _text(self, text: str) -> str:
        length = min(len(text), _MAX_STORED)
        if length > self.characters:
            return _OMITTED
        self.characters -= length
        return text if length == len(text) else text[:length]


def _cut(value: Json) -> Json:
    if isinstance(value, str):
        return _cut_text(value)
    if isinstance(value, dict):
        return {_cut_text(name): _cut(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_cut(member) for member in value]
    return value


def _cut_text(text: str) -> str:
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + _OMITTED
