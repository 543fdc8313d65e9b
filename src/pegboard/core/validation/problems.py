"""What is wrong with arguments, in words that a model can act on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.schemas.reading import View
from pegboard.core.schemas.scalars import Room
from pegboard.core.schemas.spelling import spelled

MOST_TOLD = 6
_ROOM = Room(depth=2, values=20, literal=60)
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what, and what would be right."""

    field: str
    message: str
    expected: str | None = None
    nearest: tuple[str, ...] = ()
    is_about_unknown: bool = False

    @classmethod
    def unknown(cls, name: str, meant: Sequence[str]) -> Problem:
        """A parameter that the tool does not have."""
        hint = f" (did you mean `{meant[0]}`?)" if meant else ""
        return cls(name, f"there is no parameter `{name}`{hint}", nearest=tuple(meant))

    @classmethod
    def of(cls, error: jsonschema_rs.ValidationError, schema: JsonObject) -> Problem:
        """The problem that a validator reports."""
        field = _path(error.instance_path)
        kind: Any = error.kind  # its attributes depend on the keyword
        match kind.name:
            case "required":
                missing = _joined(field, str(kind.property))
                return cls(missing, f"`{missing}` is missing", _missing_type(error, schema))
            case "additionalProperties" | "unevaluatedProperties":
                names = ", ".join(f"`{_joined(field, n)}`" for n in kind.unexpected)
                at_root = not error.instance_path
                return cls(field, f"there is no {names}", is_about_unknown=at_root)
            case _:
                return _wrong_value(field, error, schema)


def explain(tool: str, problems: Sequence[Problem], signature: str) -> str:
    """All problems in one message that ends with how the tool is called."""
    told = [p.message for p in problems[:MOST_TOLD]]
    if len(problems) > MOST_TOLD:
        told.append(f"and {len(problems) - MOST_TOLD} more")
    return f"{tool}: {'; '.join(told)}. Call it as {signature}"


def _wrong_value(field: str, error: jsonschema_rs.ValidationError, schema: JsonObject) -> Problem:
    expected = _expected(error.schema_path, schema)
    where = f"`{field}`" if field else "the arguments"
    got = _shortened(error.instance)
    if expected is None or error.kind.name not in ("type", "enum", "const", "anyOf", "oneOf"):
        # Bounds, patterns and formats are said best in the validator's own words.
        return Problem(field, f"{where}: {_first_line(error.message)}", expected)
    return Problem(field, f"{where} must be {expected}, not {got}", expected)


def _expected(path: Sequence[str | int], schema: JsonObject) -> str | None:
    return _spelled_at(path[:-1], schema)


def _missing_type(error: jsonschema_rs.ValidationError, schema: JsonObject) -> str | None:
    kind: Any = error.kind
    return _spelled_at([*error.schema_path[:-1], "properties", kind.property], schema)


def _spelled_at(path: Sequence[str | int], schema: JsonObject) -> str | None:
    """The type that the schema at a path stands for, as signatures spell it."""
    view, at = View.of(schema), schema
    for step in path:
        inner = _step(at, step)
        if not isinstance(inner, (dict, list)):
            return None
        at = inner
    return spelled(view.at(at), _ROOM) if isinstance(at, dict) else None


def _step(at: Any, step: str | int) -> Json:
    if isinstance(at, list):
        return at[int(step)] if str(step).isdigit() and int(step) < len(at) else None
    return at.get(step) if isinstance(at, dict) else None


def _path(steps: Sequence[str | int]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else step)
    return text


def _joined(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name


def _first_line(text: str) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= 200 else f"{line[:199]}…"


def _shortened(value: Json) -> str:
    text = compact(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
