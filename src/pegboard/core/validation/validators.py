"""A schema compiled once, bounded, and never looking beyond itself.

Stricter than JSON Schema in one thing, parameters that no part of the schema names where it does
not say in so many words that there may be others. Of a `closed` tool, such as a Python function,
all of them are refused: it would not know what to do with them. Of others one is refused that is a
slip of the pen: almost the name of a parameter that was not given.

And more lenient in two: `format` is left to the server, which alone knows how strictly it reads
dates or addresses; and a schema that is itself wrong (`problem` says how) lets everything through,
since a call that might work is better than none.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from itertools import islice

import jsonschema_rs

from pegboard.core.json import Json, JsonObject
from pegboard.core.names import is_slip
from pegboard.core.schemas import repaired, signature
from pegboard.core.schemas.keywords import fits
from pegboard.core.schemas.reading import View, branches_of
from pegboard.core.validation.bounds import DEEPEST, Bounds, bounds
from pegboard.core.validation.problems import Problem, explain, problems_of, unknown
from pegboard.errors import InvalidArguments

MOST_BACKTRACKING = 100_000
MOST_ERRORS = 40
_DEEPEST_BRANCH = 8
_MISSING = jsonschema_rs.ValidationErrorKind.Required


class Validator:
    """One schema, ready to check arguments; `problem` tells why it cannot be, if it cannot.

    `closed`: the tool takes no parameter that the schema does not name, whether it says so or not.
    """

    def __init__(self, schema: Json, *, closed: bool = True) -> None:
        self.closed = closed
        self.schema: JsonObject = schema if isinstance(schema, dict) else {}
        self._bounds = bounds(schema) if isinstance(schema, dict) else Bounds("it is not an object")
        self.problem = self._bounds.problem
        self._compiled = None if self.problem else self._compile()

    def check(self, arguments: JsonObject, tool: str) -> JsonObject:
        """The arguments themselves, fit for the tool.

        Raises:
            InvalidArguments: They do not fit; says what is wrong and what would be right.
        """
        if self.accepts(arguments):
            return arguments
        problems = self.problems(arguments)
        if not problems:
            return arguments
        line = signature(tool, self.schema)
        first = problems[0]
        raise InvalidArguments(
            explain(tool, problems, line),
            tool=tool,
            field=first.field or None,
            expected=first.expected,
            nearest=list(first.nearest) or None,
            signature=line,
            problems=[problem.wire() for problem in problems] if len(problems) > 1 else None,
        )

    def accepts(self, arguments: JsonObject) -> bool:
        """Whether there is nothing to say against the arguments."""
        if self._compiled is None:
            return True
        if self.strangers(arguments) and (self.closed or self._slips(arguments)):
            return False
        if self._bounds.deepest is not None and not _is_flat(arguments, self._bounds.deepest):
            # Too deep to be asked about, though perhaps not for the tool.
            return _is_flat(arguments, DEEPEST)
        try:
            return self._compiled.is_valid(arguments)
        except (ValueError, TypeError):
            return False  # not JSON; the list of problems says so

    def problems(self, arguments: JsonObject) -> list[Problem]:
        """Everything that is wrong with the arguments, unknown parameters first."""
        errors = self.errors(arguments)
        is_short = any(isinstance(error.kind, _MISSING) for error in errors)
        strangers = (self.strangers if self.closed or is_short else self._slips)(arguments)
        found = [unknown(name, self._known or ()) for name in strangers]
        if not errors and not found:
            return [Problem("", _unlisted(arguments))]
        others = (p for error in errors for p in problems_of(error, self.schema))
        return list(dict.fromkeys([*found, *(p for p in others if p.field not in strangers)]))

    def errors(self, arguments: JsonObject) -> Sequence[jsonschema_rs.ValidationError]:
        """What the schema says against the arguments: the first so many things, if it can say."""
        explained = self._bounds.explained
        if self._compiled is None or (explained and not _is_flat(arguments, explained)):
            return ()
        try:
            return list(islice(self._compiled.iter_errors(arguments), MOST_ERRORS))
        except (ValueError, TypeError):  # not JSON, or deeper than it can show
            return ()

    def strangers(self, arguments: JsonObject) -> list[str]:
        """The arguments that the schema neither names nor expressly lets in."""
        known = self._known
        if known is None or self._compiled is None or known.issuperset(arguments):
            return []
        return [name for name in arguments if name not in known]

    def _slips(self, arguments: JsonObject) -> list[str]:
        """The strangers that are almost the name of a parameter that was not given."""
        absent = [name for name in self._known or () if name not in arguments]
        return [name for name in self.strangers(arguments) if is_slip(name, absent)]

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The names of all parameters, in whichever branch of the schema."""
        return frozenset(_names(View.of(self.schema))[0])

    @cached_property
    def _known(self) -> frozenset[str] | None:
        """The parameters if there can be no others."""
        view = View.of(self.schema)
        names, is_open = _names(view)
        # `properties: {}` says that there are none; a schema without a word of them says nothing.
        spoken = names or isinstance(view.schema.get("properties"), dict)
        return frozenset(names) if spoken and not is_open else None

    def _compile(self) -> jsonschema_rs.Validator | None:
        types = View.of(self.schema).types
        if types and "object" not in types:
            self.problem = f"it describes a value of type {'|'.join(types)}, not an object"
            return None
        try:
            return _compiled(self.schema)
        except (ValueError, TypeError, jsonschema_rs.ReferencingError) as exc:
            self.problem = str(exc).split("\n", 1)[0]
        mended = repaired(self.schema)
        try:
            # Definitions that were pasted below the root are found once they are moved there.
            compiled = None if mended is self.schema else _compiled(mended)
        except (ValueError, TypeError, jsonschema_rs.ReferencingError):
            return None
        self.problem = None if compiled else self.problem
        return compiled


class Validators:
    """Validators kept by tool, the most recently used ones."""

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[str, Validator] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def of(self, key: str, schema: JsonObject, *, closed: bool = True) -> Validator:
        """The validator of a schema; compiled again only when the tool's schema has changed."""
        kept = self._kept.get(key)
        if kept is not None and (kept.schema is schema or kept.schema == schema):
            self._kept.move_to_end(key)
            return kept
        made = self._kept[key] = Validator(schema, closed=closed)
        self._kept.move_to_end(key)
        if len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
        return made


def _compiled(schema: JsonObject) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(
        schema,
        offline=True,
        validate_formats=False,
        pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=MOST_BACKTRACKING),
    )


def _is_flat(arguments: JsonObject, levels: int) -> bool:
    return fits(arguments, depth=levels, nodes=1_000_000)


def _unlisted(arguments: JsonObject) -> str:
    """What to say where the schema refuses arguments and cannot say why."""
    if not _is_flat(arguments, DEEPEST):
        return f"the arguments are nested more than {DEEPEST} levels deep"
    try:
        json.dumps(arguments, allow_nan=False)
    except (TypeError, ValueError) as exc:
        return f"the arguments are not JSON: {exc}"
    return "the arguments do not fit, somewhere deep inside them"


def _names(view: View, level: int = 0) -> tuple[set[str], bool]:
    """Every parameter that a schema names, and whether it lets others in."""
    names = set(view.members)
    is_open = view.cut or level > _DEEPEST_BRANCH
    is_open |= view.extra is not False or "patternProperties" in view.schema
    if is_open:
        return names, True
    for branch in branches_of(view):
        inner, opened = _names(branch, level + 1)
        names |= inner
        is_open |= opened
    return names, is_open
