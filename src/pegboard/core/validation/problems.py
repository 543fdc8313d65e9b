"""What is wrong with arguments, in words that a model can act on.

The validator reports errors by keyword and path in the schema. A `Problem` names the parameter,
says what is wrong, and says what would be right, in the notation of signatures. Of a union that
matches no alternative, only the errors of the alternative that was likely meant are reported: the
errors of all the others would be noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import jsonschema_rs

from pegboard.core.json import JsonObject, compact
from pegboard.core.schemas.schema_view import SchemaView
from pegboard.core.schemas.signatures import Detail, format_type
from pegboard.core.schemas.traversal import NOT_FOUND, follow_path, is_schema
from pegboard.core.similar_names import nearest

MAX_LISTED_PROBLEMS = 6
_DETAIL = Detail(depth=2, values=20, literal=60)
_MAX_SHOWN = 60
_NOT_MEANT = 1_000
"""The distance of an alternative that the value was not meant for."""
_Error = jsonschema_rs.ValidationError
_Kind = jsonschema_rs.ValidationErrorKind
# What the validator could not decide is no reason to refuse a call.
_UNDECIDED = (_Kind.BacktrackLimitExceeded, _Kind.RegexEngineFailure, _Kind.Referencing)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, what, and what would be right."""

    field: str
    message: str
    expected: str | None = None
    nearest: tuple[str, ...] = ()

    def wire(self) -> JsonObject:
        """The same as data, for programs."""
        made: JsonObject = {"field": self.field, "message": self.message}
        if self.expected:
            made["expected"] = self.expected
        if self.nearest:
            made["nearest"] = list(self.nearest)
        return made


def format_problems(tool: str, problems: Sequence[Problem], signature: str) -> str:
    """All problems in one message that ends with how to call the tool."""
    messages = [problem.message for problem in problems[:MAX_LISTED_PROBLEMS]]
    if len(problems) > MAX_LISTED_PROBLEMS:
        messages.append(f"and {len(problems) - MAX_LISTED_PROBLEMS} more")
    return f"{tool}: {'; '.join(messages)}. Call it as {signature}"


def unknown_parameter(name: str, known: Iterable[str], holder: str = "") -> Problem:
    """The problem of a parameter that does not exist."""
    # The message suggests one name; the others are in the data, for clients that show a choice.
    meant = nearest(name, list(known), limit=3)
    hint = f" (did you mean {_quote(meant[0])}?)" if meant else ""
    field = _join_path(holder, name)
    return Problem(field, f"there is no {_quote(field)}{hint}", nearest=tuple(meant))


def describe_error(error: _Error, schema: JsonObject) -> Iterator[Problem]:
    """The problems that one error of the validator stands for."""
    for leaf in relevant_errors(error):
        field, kind = "", leaf.kind
        for step in leaf.instance_path:
            field = f"{field}[{step}]" if isinstance(step, int) else _join_path(field, step)
        if isinstance(kind, (_Kind.AdditionalProperties, _Kind.UnevaluatedProperties)):
            known = view_at(leaf.schema_path[:-1], schema).properties
            yield from (unknown_parameter(name, known, field) for name in kind.unexpected)
        elif isinstance(kind, _Kind.Required):
            missing = _join_path(field, kind.property)
            view = view_at([*leaf.schema_path[:-1], "properties", kind.property], schema)
            expected = format_type(view, _DETAIL) if view.schema else None
            hint = f" ({expected})" if expected else ""
            yield Problem(missing, f"{_quote(missing)} is missing{hint}", expected)
        elif not isinstance(kind, _UNDECIDED):
            yield _wrong_value(leaf, field, schema)


def relevant_errors(error: _Error) -> Iterator[_Error]:
    """The errors behind one error that matter: those of the alternative that was likely meant."""
    kind = error.kind
    is_union = isinstance(kind, (_Kind.AnyOf, _Kind.OneOfNotValid))
    if is_union and isinstance(error.instance, (dict, list)) and _required_names(error) is None:
        # For other values the type of the whole union says enough: `must be int|str, not null`.
        closest = min(kind.context, key=lambda branch: _distance(error, branch), default=[])
        if closest and _distance(error, closest) < _NOT_MEANT:
            for inner in closest:
                yield from relevant_errors(inner)
            return
    yield error


def view_at(path: Sequence[str | int], schema: JsonObject) -> SchemaView:
    """The part of a schema that an error is about; an empty one where it cannot be found."""
    whole = SchemaView.of(schema)
    found = follow_path(whole.root, tuple(map(str, path)))
    return whole.at(found if found is not NOT_FOUND and is_schema(found) else {})


def _distance(union: _Error, branch: Sequence[_Error]) -> int:
    """How far a value is from an alternative; one of another type or tag was not meant."""
    distance = 0
    for error in branch:
        kind = error.kind
        if isinstance(kind, _Kind.Enum):
            is_other = len(kind.options) == 1  # how constants were written before `const`
        else:
            is_other = isinstance(kind, _Kind.Constant) or (
                kind.name in ("type", "falseSchema") and error.instance_path == union.instance_path
            )
        distance += _NOT_MEANT if is_other else 1
    return distance


def _required_names(union: _Error) -> list[list[str]] | None:
    """The names that each alternative requires, if none of them requires anything else."""
    if not isinstance(union.kind, (_Kind.AnyOf, _Kind.OneOfNotValid)):
        return None
    choices: list[list[str]] = []
    for branch in union.kind.context:
        kinds = [e.kind for e in branch if e.instance_path == union.instance_path]
        names = [kind.property for kind in kinds if isinstance(kind, _Kind.Required)]
        if len(names) != len(branch):  # this alternative demands something else as well
            return None
        choices.append(names)
    return choices or None


def _wrong_value(error: _Error, field: str, schema: JsonObject) -> Problem:
    where = _quote(field) if field else "the call"
    if isinstance(error.kind, _Kind.FalseSchema):  # how schemas forbid a parameter
        return Problem(field, f"{where} may not be given")
    if (choices := _required_names(error)) is not None:
        # `needs a or b and c` says more than the type of the whole object.
        texts = (" and ".join(_quote(_join_path(field, n)) for n in names) for names in choices)
        return Problem(field, f"{where} needs {' or '.join(dict.fromkeys(texts))}")
    expected = format_type(view_at(error.schema_path[:-1], schema), _DETAIL)
    violation = _describe_size(error) or _describe_rule(error)
    if violation:
        return Problem(field, f"{where} {violation}", expected)
    got = _truncate(compact(error.instance), _MAX_SHOWN)
    options = error.kind.options if isinstance(error.kind, _Kind.Enum) else ()
    meant = nearest(str(error.instance), [o for o in options if isinstance(o, str)], limit=1)
    return Problem(field, f"{where} must be {expected}, not {got}", expected, tuple(meant))


def _describe_size(error: _Error) -> str | None:
    """The actual and the allowed size, for limits on length."""
    match error.kind:
        case _Kind.MaxLength(limit) | _Kind.MaxItems(limit) | _Kind.MaxProperties(limit):
            allowed = f"at most {limit} are allowed"
        case _Kind.MinLength(limit) | _Kind.MinItems(limit) | _Kind.MinProperties(limit):
            allowed = f"at least {limit} are needed"
        case _:
            return None
    match error.instance:
        case str(text):
            return f"has {len(text)} characters, {allowed}"
        case list(items):
            return f"has {len(items)} items, {allowed}"
        case dict(members):
            return f"has {len(members)} members, {allowed}"
        case _:
            return None


def _describe_rule(error: _Error) -> str | None:
    """The violated rule, where no type expresses it."""
    match error.kind:
        case _Kind.UniqueItems():
            return "has the same item twice"
        case _Kind.OneOfMultipleValid():
            return "matches several alternatives, but must match exactly one"
        case _Kind.Not({"required": list(names), **rest}) if not rest:
            return f"may not have {' and '.join(_quote(str(n)) for n in names)} together"
        case _Kind.PropertyNames(inner):
            return f"has a member with a wrong name: {_first_line(inner.message)}"
        case _Kind.Not() | _Kind.Contains() | _Kind.Custom():
            return f"is not allowed: {_first_line(error.message)}"
        case _:
            return None


def _join_path(holder: str, name: str) -> str:
    return f"{holder}.{name}" if holder else name


def _quote(name: str) -> str:
    return f"`{_truncate(name, _MAX_SHOWN)}`"


def _first_line(text: str) -> str:
    return _truncate(text.split("\n", 1)[0], 2 * _MAX_SHOWN)


def _truncate(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
