"""Validators: a schema compiled once, bounded, and never looking beyond itself."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property

import jsonschema_rs

from pegboard.core.json import Json, JsonObject
from pegboard.core.names import nearest
from pegboard.core.schemas import signature, unwrap_root
from pegboard.core.schemas.keywords import fits
from pegboard.core.validation.problems import Problem, explain
from pegboard.errors import InvalidArguments

MOST_BACKTRACKING = 100_000
_BRANCHES = ("allOf", "anyOf", "oneOf")
_OPENING = ("patternProperties", "unevaluatedProperties", "propertyNames", "$dynamicRef")
_DEFAULT_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class Validator:
    """One schema, ready to check arguments.

    A schema that cannot be compiled (`problem` says why) lets everything through: the server behind
    it has the last word, and a call that might work is better than none.
    """

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema
        self.problem: str | None = None
        self._compiled = self._compile()

    def check(self, arguments: JsonObject, tool: str) -> None:
        """Accept the arguments of a tool.

        Raises:
            InvalidArguments: They do not fit; says what is wrong and what would be right.
        """
        if self.accepts(arguments):
            return
        problems = self.problems(arguments)
        if not problems:  # accepted after all: the two questions see very deep values differently
            return
        first = problems[0]
        raise InvalidArguments(
            explain(tool, problems, signature(tool, self.schema)),
            tool=tool,
            field=first.field or None,
            expected=first.expected,
            nearest=list(first.nearest) or None,
            signature=signature(tool, self.schema),
        )

    def accepts(self, arguments: JsonObject) -> bool:
        """Whether there is nothing to say against the arguments."""
        if self._known is not None and not self._known.issuperset(arguments):
            return False
        if self._compiled is None:
            return True
        try:
            return self._compiled.is_valid(arguments)
        except (ValueError, RecursionError):
            return False  # deeper than anything a tool takes

    def problems(self, arguments: JsonObject) -> list[Problem]:
        """Everything that is wrong with the arguments, unknown parameters first."""
        unknown = [k for k in arguments if self._known is not None and k not in self._known]
        found = [Problem.unknown(k, nearest(k, self._known or (), limit=3)) for k in unknown]
        for error in self.errors(arguments):
            problem = Problem.of(error, self.schema)
            if problem.field not in unknown and not problem.is_about_unknown:
                found.append(problem)
        return found

    def errors(self, arguments: JsonObject) -> Sequence[jsonschema_rs.ValidationError]:
        """What the schema itself says against the arguments."""
        if self._compiled is None:
            return ()
        try:
            return list(self._compiled.iter_errors(arguments))
        except (ValueError, RecursionError):
            raise InvalidArguments("The arguments are nested too deeply.") from None

    def _compile(self) -> jsonschema_rs.Validator | None:
        if not fits(self.schema):
            self.problem = "the schema is too large or too deep"
            return None
        schema = self.schema if "$schema" in self.schema else self.schema | _default_draft()
        try:
            return jsonschema_rs.validator_for(
                schema,
                offline=True,
                pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=MOST_BACKTRACKING),
            )
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as exc:
            self.problem = str(exc).split("\n", 1)[0]
            return None

    @cached_property
    def _known(self) -> frozenset[str] | None:
        """All parameters there are; `None` where the schema lets others in."""
        root = unwrap_root(self.schema)
        names = _parameter_names(root)
        if names or (names is not None and root.get("additionalProperties") is False):
            return frozenset(names)
        return None  # a schema that names none says nothing, unless it says that there are none


class Validators:
    """Validators kept by tool, the most recently used ones."""

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[str, Validator] = OrderedDict()

    def of(self, key: str, schema: JsonObject) -> Validator:
        """The validator of a schema; compiled again only when the tool's schema has changed."""
        kept = self._kept.get(key)
        if kept is not None and (kept.schema is schema or kept.schema == schema):
            self._kept.move_to_end(key)
            return kept
        made = self._kept[key] = Validator(schema)
        if len(self._kept) > self._capacity:
            self._kept.popitem(last=False)
        return made


def _default_draft() -> JsonObject:
    return {"$schema": _DEFAULT_DRAFT}


def _parameter_names(schema: Json) -> set[str] | None:
    """Every parameter a schema names, over all its branches; `None` where it is open to others."""
    if not isinstance(schema, dict):
        return None
    if schema.get("additionalProperties") not in (None, False) or any(
        k in schema for k in _OPENING
    ):
        return None
    properties = schema.get("properties")
    names = set(properties) if isinstance(properties, dict) else set[str]()
    branches = [b for key in _BRANCHES for b in schema.get(key) or ()]
    branches += [schema[key] for key in ("if", "then", "else", "$ref") if key in schema]
    if isinstance(dependent := schema.get("dependentSchemas"), dict):
        branches += dependent.values()
    for branch in branches:
        inner = _parameter_names(branch)
        if inner is None:
            return None
        names |= inner
    return names
