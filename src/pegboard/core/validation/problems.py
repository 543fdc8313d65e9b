"""What is wrong with arguments, in words that a model can act on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import jsonschema_rs

from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.schemas.schema_view import SchemaView
from pegboard.core.schemas.signatures import Detail, format_type
from pegboard.core.schemas.traversal import NOT_FOUND, follow_path, is_schema
from pegboard.core.tool_names import nearest

MOST_TOLD = 6
_ROOM = Detail(depth=2, values=20, literal=60)
_SHOWN = 60
_ELSEWHERE = 1_000
_Error = jsonschema_rs.ValidationError
_Kind = jsonschema_rs.ValidationErrorKind
# What the validator could not tell is no reason to refuse a call.
_UNDECIDED = (_Kind.BacktrackLimitExceeded, _Kind.RegexEngineFailure, _Kind.Referencing)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what, and what would be right."""

    field: str
    message: str
    expected: str | None = None
    nearest: tuple[str, ...] = ()

    def wire(self) -> JsonObject:
        """The same as data, for whoever does not read sentences."""
        made: JsonObject = {"field": self.field, "message": self.message}
        if self.expected:
            made["expected"] = self.expected
        if self.nearest:
            made["nearest"] = list(self.nearest)
        return made


def explain(tool: str, problems: Sequence[Problem], signature: str) -> str:
    """All problems in one message that ends with how the tool is called."""
    told = [problem.message for problem in problems[:MOST_TOLD]]
    if len(problems) > MOST_TOLD:
        told.append(f"and {len(problems) - MOST_TOLD} more")
    return f"{tool}: {'; '.join(told)}. Call it as {signature}"


def unknown(name: str, known: Iterable[str], holder: str = "") -> Problem:
    """A parameter that there is not."""
    meant = nearest(name, list(known), limit=3)
    hint = f" (did you mean {_quoted(meant[0])}?)" if meant else ""
    field = _joined(holder, name)
    return Problem(field, f"there is no {_quoted(field)}{hint}", nearest=tuple(meant))


def problems_of(error: _Error, schema: JsonObject) -> Iterator[Problem]:
    """What one error of the validator means for whoever wrote the arguments."""
    for leaf in leaves(error):
        field, kind = _path(leaf.instance_path), leaf.kind
        if isinstance(kind, (_Kind.AdditionalProperties, _Kind.UnevaluatedProperties)):
            known = at(leaf.schema_path[:-1], schema).properties
            yield from (unknown(name, known, field) for name in kind.unexpected)
        elif isinstance(kind, _Kind.Required):
            missing = _joined(field, kind.property)
            view = at([*leaf.schema_path[:-1], "properties", kind.property], schema)
            expected = format_type(view, _ROOM) if view.schema else None
            told = f" ({expected})" if expected else ""
            yield Problem(missing, f"{_quoted(missing)} is missing{told}", expected)
        elif not isinstance(kind, _UNDECIDED):
            yield _wrong_value(leaf, field, schema)


def leaves(error: _Error) -> Iterator[_Error]:
    """The errors behind one error that matter: those of the alternative that was likely meant."""
    kind = error.kind
    is_union = isinstance(kind, (_Kind.AnyOf, _Kind.OneOfNotValid))
    if is_union and isinstance(error.instance, (dict, list)) and _choices(error) is None:
        closest = min(kind.context, key=lambda branch: _distance(error, branch), default=[])
        if closest and _distance(error, closest) < _ELSEWHERE:
            for inner in closest:
                yield from leaves(inner)
            return
    yield error


def at(path: Sequence[str | int], schema: JsonObject) -> SchemaView:
    """The part of a schema that an error speaks of; an empty one where it cannot be found."""
    whole = SchemaView.of(schema)
    found = follow_path(whole.root, tuple(map(str, path)))
    return whole.at(found if found is not NOT_FOUND and is_schema(found) else {})


def _distance(union: _Error, branch: Sequence[_Error]) -> int:
    """How far a value is from an alternative; one of another type or name was not meant."""
    return sum(_ELSEWHERE if _is_elsewhere(union, error) else 1 for error in branch)


def _is_elsewhere(union: _Error, error: _Error) -> bool:
    kind = error.kind
    if isinstance(kind, _Kind.Enum):
        return len(kind.options) == 1
    return isinstance(kind, _Kind.Constant) or (
        kind.name in ("type", "falseSchema") and error.instance_path == union.instance_path
    )


def _choices(union: _Error) -> list[list[str]] | None:
    """The names that each alternative asks for, if that is all that any of them asks for."""
    if not isinstance(union.kind, (_Kind.AnyOf, _Kind.OneOfNotValid)):
        return None
    choices: list[list[str]] = []
    for branch in union.kind.context:
        kinds = [e.kind for e in branch if e.instance_path == union.instance_path]
        names = [kind.property for kind in kinds if isinstance(kind, _Kind.Required)]
        if len(names) != len(branch):
            return None
        choices.append(names)
    return choices or None


def _wrong_value(error: _Error, field: str, schema: JsonObject) -> Problem:
    where = _quoted(field) if field else "the call"
    if isinstance(error.kind, _Kind.FalseSchema):
        return Problem(field, f"{where} may not be given")
    if (choices := _choices(error)) is not None:
        texts = (" and ".join(_quoted(_joined(field, n)) for n in names) for names in choices)
        return Problem(field, f"{where} needs {' or '.join(dict.fromkeys(texts))}")
    expected = format_type(at(error.schema_path[:-1], schema), _ROOM)
    said = _measured(error) or _forbidden(error)
    if said:
        return Problem(field, f"{where} {said}", expected)
    got = _shortened(error.instance)
    options = error.kind.options if isinstance(error.kind, _Kind.Enum) else ()
    meant = nearest(str(error.instance), [o for o in options if isinstance(o, str)], limit=1)
    return Problem(field, f"{where} must be {expected}, not {got}", expected, tuple(meant))


def _measured(error: _Error) -> str | None:
    """How much there is and how much there may be, for limits on length."""
    match error.kind:
        case _Kind.MaxLength(limit) | _Kind.MaxItems(limit) | _Kind.MaxProperties(limit):
            most = f"at most {limit} are allowed"
        case _Kind.MinLength(limit) | _Kind.MinItems(limit) | _Kind.MinProperties(limit):
            most = f"at least {limit} are needed"
        case _:
            return None
    match error.instance:
        case str(text):
            return f"has {len(text)} characters, {most}"
        case list(items):
            return f"has {len(items)} items, {most}"
        case dict(members):
            return f"has {len(members)} members, {most}"
        case _:
            return None


def _forbidden(error: _Error) -> str | None:
    """What may not be so, for rules that no type expresses."""
    match error.kind:
        case _Kind.UniqueItems():
            return "has the same item twice"
        case _Kind.OneOfMultipleValid():
            return "fits several alternatives, of which only one may hold"
        case _Kind.Not({"required": list(names), **rest}) if not rest:
            return f"may not have {' and '.join(_quoted(str(n)) for n in names)} together"
        case _Kind.PropertyNames(inner):
            return f"has a member with a wrong name: {_first_line(inner.message)}"
        case _Kind.Not() | _Kind.Contains() | _Kind.Custom():
            return f"is not allowed: {_first_line(error.message)}"
        case _:
            return None


def _path(steps: Sequence[str | int]) -> str:
    text = ""
    for step in steps:
        text += f"[{step}]" if isinstance(step, int) else (f".{step}" if text else step)
    return text


def _joined(holder: str, name: str) -> str:
    return f"{holder}.{name}" if holder else name


def _quoted(name: str) -> str:
    return f"`{name if len(name) <= _SHOWN else name[: _SHOWN - 1] + '…'}`"


def _first_line(text: str) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= 2 * _SHOWN else f"{line[: 2 * _SHOWN - 1]}…"


def _shortened(value: Json) -> str:
    text = compact(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
