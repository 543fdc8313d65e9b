"""A schema compiled once, bounded, and never looking beyond itself.

Stricter than JSON Schema in one thing: parameters that no part of the schema names, where it does
not explicitly allow others. A `closed` tool, such as a Python function, refuses all of them: it
would not know what to do with them. Other tools refuse only a likely typo: almost the name of a
parameter that was not given.

And more lenient in three: `format` is left to the server, which alone knows how strictly it reads
dates or addresses; so is a `pattern` that cannot be checked in linear time (`unchecked` lists
these); and a schema that is itself wrong (`problem` says how) lets everything through, since a call
that might work is better than none.

`is_expensive` estimates, before anything is checked, whether that could take long. It compares the
work that the schema can cause for each value and character with how many of them there are.

The examples of a tool must be valid calls: `check_examples` checks them with the same validator.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice

import jsonschema_rs
from jsonschema_rs import ValidationErrorKind

from pegboard.core.caches import BoundedCache
from pegboard.core.json import Json, JsonObject, is_within_bounds, measure_json
from pegboard.core.schemas import format_signature, repair_schema
from pegboard.core.schemas.schema_view import SchemaView, all_branches
from pegboard.core.similar_names import is_typo
from pegboard.core.tools import Example, Tool
from pegboard.core.validation.bounds import (
    MAX_DEPTH,
    Bounds,
    compile_validator,
    compute_bounds,
    drop_unsafe_patterns,
)
from pegboard.core.validation.problems import (
    Problem,
    describe_error,
    format_problems,
    unknown_parameter,
)
from pegboard.errors import ConfigError, InvalidArguments

MAX_ERRORS = 40
MAX_UNKNOWN = 40
MAX_WORK = 250_000
"""Units of work, of about 50 ns each, that checking may take on the event loop."""
MAX_VALUES = 2_000
"""Values in the arguments, for the same reason: each listed error copies a part of them."""
EXPENSIVE_SCHEMA = 5_000
"""Work for each value above which a schema is expensive even to compile."""
_MAX_BRANCH_DEPTH = 8


class Validator:
    """One schema, ready to check arguments; `problem` says why it cannot, if it cannot.

    `closed`: the tool takes no parameter that the schema does not name, whatever the schema says.
    """

    def __init__(self, schema: Json, *, closed: bool = True) -> None:
        self.closed = closed
        self.schema: JsonObject = schema if isinstance(schema, dict) else {}
        self._bounds = (
            compute_bounds(schema) if isinstance(schema, dict) else Bounds("it is not an object")
        )
        self._problem = self._bounds.problem

    @property
    def problem(self) -> str | None:
        """Why the schema cannot be used, if it cannot; compiles it."""
        _ = self._compiled
        return self._problem

    def is_expensive(self, arguments: Json) -> bool:
        """Whether checking these could block the event loop noticeably; compiles nothing."""
        per_value, per_character = self._bounds.per_value, self._bounds.per_character
        if self._bounds.problem:  # then nothing is checked at all
            return False
        if per_value + per_character > EXPENSIVE_SCHEMA:
            return True
        explained = self._bounds.explained
        if explained is not None and not _is_within_depth(arguments, explained):
            return True
        size = measure_json(arguments, MAX_VALUES)
        if size is None:
            return True
        # Reading a character costs a little even where no pattern looks at it.
        return size.values * per_value + size.characters * (per_character + 0.01) > MAX_WORK

    def check(self, arguments: JsonObject, tool: str) -> JsonObject:
        """The arguments themselves, if they are valid for the tool.

        Raises:
            InvalidArguments: They are not valid; says what is wrong and what would be right.
        """
        if self.accepts(arguments):
            return arguments
        problems = self.problems(arguments)
        if not problems:  # only what the validator could not decide
            return arguments
        line = format_signature(tool, self.schema)
        first = problems[0]
        raise InvalidArguments(
            format_problems(tool, problems, line),
            tool=tool,
            field=first.field or None,
            expected=first.expected,
            nearest=list(first.nearest) or None,
            signature=line,
            problems=[problem.wire() for problem in problems] if len(problems) > 1 else None,
        )

    def accepts(self, arguments: JsonObject) -> bool:
        """Whether the arguments are valid."""
        if self._compiled is None:
            return True
        if self.unknown_names(arguments) and (self.closed or self._typos(arguments)):
            return False
        if self._bounds.deepest is not None and not _is_within_depth(
            arguments, self._bounds.deepest
        ):
            # Too deep for the validator's stack, though perhaps not for the tool: it decides.
            return _is_within_depth(arguments, MAX_DEPTH)
        try:
            return self._compiled.is_valid(arguments)
        except (ValueError, TypeError):
            return False  # not JSON; the list of problems says so

    def problems(self, arguments: JsonObject) -> list[Problem]:
        """Everything that is wrong with the arguments, unknown parameters first."""
        errors = self.errors(arguments)
        # Where something required is missing, an unknown name is likely what was meant for it.
        is_missing = any(isinstance(error.kind, ValidationErrorKind.Required) for error in errors)
        find = self.unknown_names if self.closed or is_missing else self._typos
        unknown = find(arguments)[:MAX_UNKNOWN]
        found = [unknown_parameter(name, self._known or ()) for name in unknown]
        if not errors and not found:
            return [Problem("", _explain_without_errors(arguments))]
        others = (p for error in errors for p in describe_error(error, self.schema))
        return list(dict.fromkeys([*found, *(p for p in others if p.field not in unknown)]))

    def errors(self, arguments: JsonObject) -> Sequence[jsonschema_rs.ValidationError]:
        """The first errors of the arguments; none where they cannot be listed."""
        explained = self._bounds.explained
        if self._compiled is None or (explained and not _is_within_depth(arguments, explained)):
            return ()
        try:
            return list(islice(self._compiled.iter_errors(arguments), MAX_ERRORS))
        except (ValueError, TypeError):  # not JSON, or too deep to be reported
            return ()

    def unknown_names(self, arguments: JsonObject) -> list[str]:
        """The arguments that the schema neither names nor explicitly allows."""
        known = self._known
        if known is None or self._compiled is None or known.issuperset(arguments):
            return []
        return [name for name in arguments if name not in known]

    def _typos(self, arguments: JsonObject) -> list[str]:
        """The unknown names that are almost the name of a parameter that was not given."""
        absent = [name for name in self._known or () if name not in arguments]
        unknown = self.unknown_names(arguments)[:MAX_UNKNOWN]
        return [name for name in unknown if is_typo(name, absent)]

    @cached_property
    def parameters(self) -> frozenset[str]:
        """The names of all parameters, in any branch of the schema."""
        return frozenset(_parameter_names(SchemaView.of(self.schema))[0])

    @cached_property
    def _known(self) -> frozenset[str] | None:
        """The names of all parameters, if there can be no others."""
        view = SchemaView.of(self.schema)
        names, is_open = _parameter_names(view)
        # `properties: {}` says that there are none; without `properties` nothing is said at all.
        is_stated = names or isinstance(view.schema.get("properties"), dict)
        return frozenset(names) if is_stated and not is_open else None

    @cached_property
    def _compiled(self) -> jsonschema_rs.Validator | None:
        """The compiled schema; `None`, with `_problem` set, where it cannot be used."""
        if self._problem:
            return None
        # Arguments are always an object, so a schema of another type would refuse every call.
        types = SchemaView.of(self.schema).types
        if types and "object" not in types:
            self._problem = f"it describes a value of type {'|'.join(types)}, not an object"
            return None
        schema, _ = drop_unsafe_patterns(self.schema)  # those are left to the server
        try:
            return compile_validator(schema)
        except (ValueError, TypeError, jsonschema_rs.ReferencingError) as exc:
            self._problem = str(exc).split("\n", 1)[0]
        fixed = repair_schema(schema).schema
        try:
            # Definitions that were pasted below the root are found once they are moved there.
            made = None if fixed is schema else compile_validator(fixed)
        except (ValueError, TypeError, jsonschema_rs.ReferencingError):
            return None
        self._problem = None if made else self._problem
        return made


class Validators:
    """Compiled validators by tool, the most recently used ones."""

    def __init__(self, capacity: int = 4096) -> None:
        self._cache: BoundedCache[str, Validator] = BoundedCache(capacity)

    def __len__(self) -> int:
        return len(self._cache)

    def get(self, key: str, schema: JsonObject, *, closed: bool = True) -> Validator:
        """The validator of a schema; compiled again only when the tool's schema has changed."""
        cached = self._cache.get(key)
        if cached is not None and (cached.schema is schema or cached.schema == schema):
            return cached
        return self._cache.put(key, Validator(schema, closed=closed))


def _is_within_depth(arguments: JsonObject, levels: int) -> bool:
    return is_within_bounds(arguments, depth=levels, nodes=1_000_000)


def _explain_without_errors(arguments: JsonObject) -> str:
    """The message where the arguments are refused and the errors cannot be listed."""
    if not _is_within_depth(arguments, MAX_DEPTH):
        return f"the arguments are nested more than {MAX_DEPTH} levels deep"
    try:
        json.dumps(arguments, allow_nan=False)
    except (TypeError, ValueError) as exc:
        return f"the arguments are not JSON: {exc}"
    return "the arguments are not valid, somewhere deep inside"


def _parameter_names(view: SchemaView, level: int = 0) -> tuple[set[str], bool]:
    """Every parameter that a schema names, and whether it allows others."""
    names = set(view.members)
    is_open = view.cut or level > _MAX_BRANCH_DEPTH
    is_open |= view.extra is not False or "patternProperties" in view.schema
    if is_open:
        return names, True
    for branch in all_branches(view):
        inner, opened = _parameter_names(branch, level + 1)
        names |= inner
        is_open |= opened
    return names, is_open


_JSON_WORDS: Mapping[str, Json] = {"true": True, "false": False, "null": None}


def check_examples(tool: Tool) -> None:
    """Check that the examples of a tool are valid calls.

    Raises:
        ConfigError: One is not; says which and why.
    """
    if not tool.examples:
        return
    validator = Validator(tool.input_schema)
    for example in tool.examples:
        try:
            validator.check(dict(example.invocation), tool.name)
        except InvalidArguments as exc:
            raise ConfigError(
                f"The example {example.description!r} is not a valid call to {exc.message}",
                tool=tool.id,
            ) from exc


def parse_examples(tool: Tool) -> Tool:
    """The tool with the invocation of every example as a mapping of arguments.

    A string such as `search(query="x", limit=5)`, or the arguments as JSON, is parsed.

    Raises:
        ConfigError: One is neither; says which one and what to write.
    """
    examples: list[Example] = []
    for example in tool.examples:
        given: Json = example.invocation
        if isinstance(given, str):
            try:
                given = _parse_invocation(tool.name, given)
            except ValueError as exc:
                raise _unreadable(tool, example, str(exc)) from exc
        elif not isinstance(given, Mapping):
            raise _unreadable(tool, example, f"it is of type {type(given).__name__}")
        examples.append(replace(example, invocation=given))
    return replace(tool, examples=tuple(examples))


def _unreadable(tool: Tool, example: Example, why: str) -> ConfigError:
    return ConfigError(
        f"The invocation of the example {example.description!r} of {tool.name!r} cannot be read: "
        f"{why}. Write its arguments as a dict, invocation={{'name': 'value'}}, or as the text of "
        f"a call, invocation=\"{tool.name}(name='value')\".",
        tool=tool.id,
    )


def _parse_invocation(name: str, text: str) -> JsonObject:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        pass  # not JSON, so it must be a call
    else:
        if not isinstance(given, dict):
            raise ValueError("it is JSON, but not an object")
        return given
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise ValueError("it is neither a call nor JSON") from exc
    if not isinstance(call, ast.Call):
        raise ValueError("it is neither a call nor JSON")
    called = call.func.attr if isinstance(call.func, ast.Attribute) else None
    called = call.func.id if isinstance(call.func, ast.Name) else called
    if called != name:
        raise ValueError(f"it calls {ast.unparse(call.func)!r}")
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        raise ValueError("every argument needs its name in front")
    arguments: JsonObject = {}
    for keyword in call.keywords:
        try:
            arguments[str(keyword.arg)] = ast.literal_eval(_JsonWords().visit(keyword.value))
        except (ValueError, TypeError, RecursionError) as exc:
            raise ValueError(f"{ast.unparse(keyword.value)!r} is not a literal value") from exc
    return arguments


class _JsonWords(ast.NodeTransformer):
    """Reads the names `true`, `false` and `null` as the JSON constants."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_JSON_WORDS[node.id]) if node.id in _JSON_WORDS else node
