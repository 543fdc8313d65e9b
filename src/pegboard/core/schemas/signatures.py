"""The compact notation of a schema: types, and how to call a tool on one line.

    str[]    int 1..100    {id: str, tags?: str[]}
    create_issue(project: str, title: str, priority?: "low"|"medium"|"high" = "medium")

Everything that a caller must respect is either written or marked with `…`, the sign that the full
description has more. Left out, because it never decides what to send: bounds beyond what a double
holds exactly, a `minLength` of one, a `pattern` beside the `format` that it repeats, and whether
a nested object takes members that it does not name.

A signature that would be long says less: nested objects shallower, enums shorter, at last only some
of the optional parameters. Required parameters are named, unless a server declares absurdly many.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.schema_view import SchemaView, merge_branches

ELLIPSIS = "…"
"""The mark for everything that the notation leaves out."""
SIGNATURE_LIMIT = 400
"""Characters that a signature may have before details are left out."""
BRIEF_LIMIT = 200
"""The same for a brief one."""

_LARGEST_EXACT_INTEGER = 2**53 - 1
_MAX_FORMAT_LENGTH = 24
_MAX_NESTING = 40
_MAX_COMPARED = 16
_MAX_ENUM_VALUE = 48
# A server may declare any number of parameters. Beyond these bounds nobody reads a line, and
# fitting it would delay everybody else.
_MAX_PARAMETERS = 100
_MAX_REQUIRED_LENGTH = 4_000
_LONG_ENUM = 16
_PLAIN_NAME = re.compile(r"[\w$@./-]+")

# Generators write these formats and repeat them as a pattern; people write the pattern alone.
_FORMATS = frozenset(
    {"date", "date-time", "time", "duration", "email", "uuid", "uri", "url", "hostname"}
    | {"ipv4", "ipv6", "cidrv4", "cidrv6", "base64", "base64url", "jwt", "e164", "regex"}
)
_FORMAT_OF_PATTERN = {
    r"^\d{4}-\d{2}-\d{2}$": "date",
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$": "date",
    "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$": "uuid",
    "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$": "uuid",
}
# Keywords that assert something which the notation cannot express.
_UNWRITTEN = frozenset(
    {"not", "if", "dependentRequired", "dependentSchemas", "dependencies", "propertyNames"}
    | {"minProperties", "maxProperties", "contains", "unevaluatedItems", "additionalItems"}
    | {"$dynamicRef", "$recursiveRef"}
)
# Many schemas leave out `type`; then other keywords show which type the author had in mind.
_TYPE_HINTS = {
    "object": ("properties", "additionalProperties", "patternProperties", "required"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems"),
    "string": ("pattern", "format", "minLength", "maxLength", "contentEncoding"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
}


@dataclass(frozen=True, slots=True)
class Detail:
    """How much to write: levels of nested objects, values of an enum, length of a literal."""

    depth: int
    values: int
    literal: int

    @property
    def inner(self) -> Detail:
        return replace(self, depth=self.depth - 1)


FULL_DETAIL = Detail(depth=12, values=1_000_000, literal=1_000_000)


_DETAILS = (
    Detail(depth=4, values=16, literal=80),
    Detail(depth=3, values=8, literal=48),
    Detail(depth=2, values=6, literal=32),
    Detail(depth=1, values=4, literal=24),
    Detail(depth=0, values=3, literal=16),
)
"""The steps by which a parameter is shortened."""


_BRIEF_STEP = 2
"""The step at which each parameter of a brief signature begins."""
_DEFAULTS = frozenset({"default", "minLength", "maxLength"})
_LIMITS = _DEFAULTS | {
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "pattern", "minItems", "maxItems", "uniqueItems",
}  # fmt: skip


def format_signature(name: str, schema: Json, *, limit: int = SIGNATURE_LIMIT) -> str:
    """How to call a tool: names, types, defaults; `…` where its description has more."""
    view = parameters_view(schema)
    texts = _SignatureLine(name, view, limit).fit()
    if view.cut or has_unwritten_rules(view):
        texts.append(ELLIPSIS)
    return f"{name}({', '.join(texts)})"


def format_brief_signature(name: str, schema: Json, *, limit: int = BRIEF_LIMIT) -> str:
    """The same in fewer tokens: enough to choose a tool, and usually enough to call it.

        create_issue(project, title, priority?: "low"|"medium"|"high", votes?: int)

    Required parameters come first. No defaults; no limits on optional values; text has no type.
    """
    view = parameters_view(schema)
    texts = _BriefSignatureLine(name, view, limit).fit()
    if view.cut or has_unwritten_rules(view):
        texts.append(ELLIPSIS)
    return f"{name}({', '.join(texts)})"


def parameters_view(schema: Json) -> SchemaView:
    """The object of a tool's parameters, whichever branch of the schema names them."""
    return merge_branches(SchemaView.of(schema))


class _SignatureLine:
    """The parameters of one signature, each with as much detail as the line has space for."""

    def __init__(self, name: str, view: SchemaView, limit: int) -> None:
        self.view = view
        self.limit = limit - len(name) - len("()")
        self.required = set(view.required)
        # Required ones come first in `members`, and no line has space for more than these.
        self.members = view.members
        names = list(self.members)[:_MAX_PARAMETERS]
        self.left_out = len(self.members) - len(names)
        self.steps = dict.fromkeys(names, 0)
        self.texts = {name: self._format(name) for name in names}
        self.unnamed = list(format_unnamed_members(view, _DETAILS[-1]))

    def fit(self) -> list[str]:
        """The texts of the parameters, the longest ones shortened first until the line fits."""
        if self.left_out:
            self.steps = dict.fromkeys(self.steps, len(_DETAILS) - 1)
            self.texts = {name: self._format(name) for name in self.steps}
            return self._leave_out_optional()
        while self._length() > self.limit:
            shortenable = [n for n, step in self.steps.items() if step + 1 < len(_DETAILS)]
            if not shortenable:
                return self._leave_out_optional()
            longest = max(shortenable, key=lambda name: len(self.texts[name]))
            self.steps[longest] += 1
            self.texts[longest] = self._format(longest)
        return self._shown()

    def _format(self, name: str) -> str:
        view = self.view.at(self.members[name])
        return format_parameter(view, name, name in self.required, _DETAILS[self.steps[name]])

    def _shown(self) -> list[str]:
        return [*filter(None, self.texts.values()), *self.unnamed]

    def _length(self) -> int:
        texts = self._shown()
        return sum(map(len, texts)) + len(", ") * (len(texts) - 1)

    def _leave_out_optional(self) -> list[str]:
        """As many optional parameters as fit, and how many more there are."""
        texts = self._shown()
        left, space = self.limit - len(f"{ELLIPSIS}999 more"), _MAX_REQUIRED_LENGTH
        shown: list[str] = []
        for number, text in enumerate(texts):
            left, space = left - len(text) - len(", "), space - len(text) - len(", ")
            # Required ones come first in `texts`; without any of them no call would be valid.
            if left < 0 and (number >= len(self.required) or space < 0):
                break
            shown.append(text)
        hidden = len(texts) - len(shown) + self.left_out
        return [*shown, f"{ELLIPSIS}{hidden} more"] if hidden else shown


class _BriefSignatureLine(_SignatureLine):
    """A signature without defaults, limits of optional values, and the type of plain text."""

    def __init__(self, name: str, view: SchemaView, limit: int) -> None:
        super().__init__(name, view, limit)
        self.texts = dict(sorted(self.texts.items(), key=lambda item: item[0] not in self.required))

    def _format(self, name: str) -> str:
        required = name in self.required
        schema = _drop_details(self.members[name], _DEFAULTS if required else _LIMITS)
        view, detail = self.view.at(schema), _DETAILS[max(self.steps[name], _BRIEF_STEP)]
        return format_parameter(view, name, required, detail).removesuffix(": str")

    def _leave_out_optional(self) -> list[str]:
        """The longest optional parameters by name alone, since a name often says enough."""
        optional = [name for name in self.texts if name not in self.required]
        for name in sorted(optional, key=lambda name: -len(self.texts[name])):
            by_name = f"{quote_name(name)}?: {ELLIPSIS}"
            if len(by_name) >= len(self.texts[name]):
                continue  # it is short as it is, or may never be given
            self.texts[name] = by_name
            if self._length() <= self.limit:
                return self._shown()
        return super()._leave_out_optional()


def _drop_details(schema: Json, keywords: frozenset[str]) -> Json:
    """A parameter's schema without these keywords, also in its alternatives."""
    if not isinstance(schema, dict):
        return schema
    # A default of null stays: it says that null need not be offered beside leaving it out.
    remaining = {
        key: value for key, value in schema.items() if key not in keywords or value is None
    }
    for union in ("anyOf", "oneOf"):
        if isinstance(branches := remaining.get(union), list):
            remaining[union] = [_drop_details(one, keywords) for one in branches]
    return remaining


def format_type(view: SchemaView, detail: Detail, level: int = 0) -> str:
    """The type that a value must have; with `…` wherever there is more to know."""
    return "|".join(format_alternatives(view, detail, level))


def format_alternatives(view: SchemaView, detail: Detail, level: int = 0) -> list[str]:
    """The same, one text per alternative; null comes last."""
    if view.cut or level > _MAX_NESTING:
        return [ELLIPSIS]
    if is_never(view):
        return ["never"]
    values, alternatives = allowed_values(view), view.alternatives
    if values is not None:
        texts = _format_values(values, detail)
    elif alternatives:
        each = (format_alternatives(one, detail, level + 1) for one in alternatives)
        texts = [text for found in each for text in found if text != "never"] or ["never"]
    else:
        texts = [_format_kind(kind, view, detail, level + 1) for kind in value_types(view)]
        texts = texts or ["any"]
    # The sort is stable, so only null moves: `str|null` reads better than `null|str`.
    texts = sorted(dict.fromkeys(texts), key="null".__eq__)
    # `oneOf` says no more than `anyOf` if no value fits two of the alternatives. Many of them are
    # not compared: the number of pairs grows with the square.
    if has_unwritten_rules(view) or (
        "oneOf" in view.schema
        and (
            len(alternatives) > _MAX_COMPARED
            or not all(_exclude_each_other(*pair) for pair in combinations(alternatives, 2))
        )
    ):
        texts[-1] = texts[-1].removesuffix(ELLIPSIS) + ELLIPSIS
    return texts


def format_parameter(
    view: SchemaView, name: str, required: bool, detail: Detail, level: int = 0
) -> str:
    """One parameter: `limit?: int 1..100 = 50`; empty for one that may never be given."""
    texts = format_alternatives(view, detail, level)
    if texts == ["never"] and not required:
        return ""
    default = ""
    value = view.schema.get("default")
    if value is not None:
        default = f" = {format_literal(value, detail)}"
    elif "default" in view.schema and not required and len(texts) > 1:
        # The default is null: leaving it out and sending null mean the same, so one is enough.
        texts = [text for text in texts if text != "null"]
    return f"{quote_name(name)}{'' if required else '?'}: {'|'.join(texts)}{default}"


def format_members(view: SchemaView, detail: Detail, level: int = 0) -> list[str]:
    """All parameters of an object, required ones first, then what else it takes."""
    required = set(view.required)
    named = [
        format_parameter(view.at(schema), name, name in required, detail, level)
        for name, schema in view.members.items()
    ]
    return [text for text in named if text] + list(format_unnamed_members(view, detail, level))


def format_unnamed_members(view: SchemaView, detail: Detail, level: int = 0) -> Iterator[str]:
    """What an object takes beyond its named members: `[key]: str`, `[/^x-/]: any`."""
    patterns = view.schema.get("patternProperties")
    for pattern, schema in patterns.items() if isinstance(patterns, dict) else ():
        key = format_pattern(str(pattern), detail).strip()
        yield f"[{key}]: {format_type(view.at(schema), detail, level)}"
    if view.extra is not False:
        yield f"[key]: {format_type(view.at(view.extra), detail, level)}"


def quote_name(name: str) -> str:
    """A parameter's name, quoted where it could be misread."""
    return name if _PLAIN_NAME.fullmatch(name) else format_literal(name)


def has_unwritten_rules(view: SchemaView) -> bool:
    """Whether the schema asserts something that the notation cannot express."""
    schema = view.schema
    # Of two unions on one value only the first is read (`alternatives`).
    if not view.exact or ("anyOf" in schema and "oneOf" in schema):
        return True
    if allowed_values(view) is not None:  # the listed values say everything
        return False
    return any(schema[keyword] not in (None, {}, []) for keyword in _UNWRITTEN & schema.keys())


def is_never(view: SchemaView) -> bool:
    """Whether no value at all is valid."""
    return "not" in view.schema and view.schema["not"] in ({}, True)


def allowed_values(view: SchemaView) -> Sequence[Json] | None:
    """The only values that are allowed, where they are listed."""
    if "const" in view.schema:
        return [view.schema["const"]]
    values = view.schema.get("enum")
    return values if isinstance(values, list) and values else None


def value_types(view: SchemaView) -> tuple[str, ...]:
    """The types that a value may have, as declared or as other keywords suggest; empty for any."""
    if "type" in view.schema:
        return view.types
    for kind, keywords in _TYPE_HINTS.items():
        if any(keyword in view.schema for keyword in keywords):
            return (kind,)
    return ()


def _format_kind(kind: str, view: SchemaView, detail: Detail, level: int) -> str:
    match kind:
        case "string":
            return format_string(view.schema, detail)
        case "integer":
            return format_integer(view.schema)
        case "number":
            return format_decimal(view.schema)
        case "array":
            return _format_array(view, detail, level)
        case "object":
            no_members = not view.members and view.extra is False
            if no_members and "patternProperties" not in view.schema:
                closed = view.schema.get("additionalProperties") is False
                return "{}" if closed and "properties" in view.schema else "object"
            if view.members and detail.depth <= 0:
                return f"{{{ELLIPSIS}}}"
            return f"{{{', '.join(format_members(view, detail.inner, level))}}}"
        case _:
            return {"boolean": "bool"}.get(kind, kind)


def _format_array(view: SchemaView, detail: Detail, level: int) -> str:
    schema = view.schema
    first, rest = schema.get("prefixItems"), schema.get("items", True)
    if isinstance(rest, list):  # until 2019-09 a list of schemas was written as `items`
        first, rest = rest, schema.get("additionalItems", True)
    limits = format_range(
        exact_number(schema.get("minItems")) or None, exact_number(schema.get("maxItems"))
    )
    unique = " unique" if schema.get("uniqueItems") is True else ""
    if isinstance(first, list) and first:
        texts = [format_type(view.at(one), detail, level) for one in first]
        if rest not in (True, False, {}):
            texts.append(f"...{_format_items(view.at(rest), detail, level)}")
        return f"[{', '.join(texts)}]{limits}{unique}"
    return _format_items(view.at(rest), detail, level) + limits + unique


def _format_items(view: SchemaView, detail: Detail, level: int) -> str:
    texts = format_alternatives(view, detail, level)
    joined = "|".join(texts)
    # `(str date)[]`, because `str date[]` could be read as a list of dates.
    bare = len(texts) == 1 and (joined[0] in "{[" or " " not in joined)
    return f"{joined}[]" if bare else f"({joined})[]"


def _format_values(values: Sequence[Json], detail: Detail) -> list[str]:
    # `enum: [true, false]` is how some generators write a boolean.
    if len(values) == 2 and all(isinstance(v, bool) for v in values) and values[0] != values[1]:
        return ["bool"]
    if _LONG_ENUM < len(values) <= detail.values:  # costs a third less than alternatives would
        return [f"enum{format_literal(values, detail)}"]
    # To write one more value costs no more than to write that there is one more.
    shown = values if len(values) <= detail.values + 1 else values[: detail.values]
    hidden = len(values) - len(shown)
    detail = replace(detail, literal=max(detail.literal, _MAX_ENUM_VALUE))
    texts = [format_literal(value, detail) for value in shown]
    return [*texts, f"{ELLIPSIS}{hidden} more"] if hidden else texts


def _exclude_each_other(one: SchemaView, other: SchemaView) -> bool:
    if _have_different_values(one, other):
        return True
    # An integer is a number too, so these two types do not exclude each other.
    types = [{t.replace("integer", "number") for t in view.types} for view in (one, other)]
    if all(types) and types[0].isdisjoint(types[1]):
        return True
    # A required member with different constants, such as `kind: "file"` and `kind: "folder"`.
    return any(
        _have_different_values(one.at(one.properties.get(n)), other.at(other.properties.get(n)))
        for n in set(one.required) & set(other.required)
    )


def _have_different_values(one: SchemaView, other: SchemaView) -> bool:
    ours, theirs = allowed_values(one), allowed_values(other)
    return ours is not None and theirs is not None and not any(value in theirs for value in ours)


def format_literal(value: Json, detail: Detail = FULL_DETAIL) -> str:
    """A JSON value on one line, or the mark when it is too long."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError):
        return ELLIPSIS
    # The mark must be unambiguous, so it is escaped where a literal contains the character.
    return text.replace(ELLIPSIS, "\\u2026") if len(text) <= detail.literal else ELLIPSIS


def format_string(schema: JsonObject, detail: Detail) -> str:
    """`str`, `str date-time`, `str /^0x/`, `str ..255`."""
    text = "str"
    form = schema.get("format", schema.get("contentEncoding"))
    pattern = schema.get("pattern")
    # A format is shorter than the pattern that spells it out, and models know it.
    if not form and isinstance(pattern, str):
        form = _FORMAT_OF_PATTERN.get(pattern)
    # Only a plain word: a server could write the rest of our line here, or a line of its own.
    if isinstance(form, str) and len(form) <= _MAX_FORMAT_LENGTH and _PLAIN_NAME.fullmatch(form):
        text += f" {form}"
    if isinstance(pattern, str) and form not in _FORMATS:
        text += format_pattern(pattern, detail)
    low, high = exact_number(schema.get("minLength")), exact_number(schema.get("maxLength"))
    # Nobody sends an empty string on purpose where one character is required.
    return text + format_range(None if low is None or low <= 1 else low, high)


def format_pattern(pattern: str, detail: Detail) -> str:
    """A leading space and `/pattern/`, or the mark when it is too long to show."""
    plain = len(pattern) <= detail.literal and pattern.isprintable() and ELLIPSIS not in pattern
    return f" /{pattern}/" if plain else ELLIPSIS


def format_integer(schema: JsonObject) -> str:
    """`int`, `int 1..100`."""
    low, above = _bound(schema, "minimum", "exclusiveMinimum", 1)
    high, below = _bound(schema, "maximum", "exclusiveMaximum", -1)
    # Whole numbers have a next one, so an exclusive bound can be written as an inclusive one.
    if low is not None and above and low == int(low):
        low, above = int(low) + 1, False
    if high is not None and below and high == int(high):
        high, below = int(high) - 1, False
    return "int" + format_range(low, high, above=above, below=below) + _format_step(schema)


def format_decimal(schema: JsonObject) -> str:
    """`number`, `number 0..1`, `number >0..`, `number 0..10 step 0.5`."""
    low, above = _bound(schema, "minimum", "exclusiveMinimum", 1)
    high, below = _bound(schema, "maximum", "exclusiveMaximum", -1)
    return "number" + format_range(low, high, above=above, below=below) + _format_step(schema)


def exact_number(value: Json) -> float | None:
    """A number that a double holds exactly, else `None`.

    Larger bounds, such as that of a 64-bit integer, limit nothing that a caller would send.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if abs(value) < _LARGEST_EXACT_INTEGER else None


def format_range(
    low: float | None, high: float | None, *, above: bool = False, below: bool = False
) -> str:
    """A leading space and `low..high`; empty when there is neither."""
    if low is None and high is None:
        return ""
    start = "" if low is None else f"{'>' if above else ''}{low:.12g}"
    end = "" if high is None else f"{'<' if below else ''}{high:.12g}"
    return f" {start}..{end}"


def _format_step(schema: JsonObject) -> str:
    step = exact_number(schema.get("multipleOf"))
    return "" if step is None else f" step {step:.12g}"


def _bound(
    schema: JsonObject, inclusive: str, exclusive: str, sign: int
) -> tuple[float | None, bool]:
    """The tighter of two bounds, and whether it is itself excluded."""
    limit, strict = exact_number(schema.get(inclusive)), schema.get(exclusive)
    if strict is True:  # in draft 4 a flag beside the bound
        return limit, True
    strict = exact_number(strict)
    if strict is None or (limit is not None and (limit - strict) * sign > 0):
        return limit, False
    return strict, True
