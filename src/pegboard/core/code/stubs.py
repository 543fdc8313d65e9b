"""Type stubs of tools, against which a program is checked before it runs.

    list_issues(project?: str, status?: "open"|"done") -> {issues[]{key, title}, total}

becomes

    _type_list_issues_issues = TypedDict(..., {"key": str, "title": str})
    _type_list_issues = TypedDict(..., {"issues": list[_type_list_issues_issues], "total": int})
    async def list_issues(
        *, project: str = ..., status: Literal["open", "done"] = ...
    ) -> _type_list_issues: ...

A type is only as narrow as a schema says without doubt; everything else is `Any`, so that no
correct program is refused. Parameters are wider than results: a sequence takes lists and tuples,
and text that the validator would convert is left to it. The stubs of hostile schemas are bounded.
"""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pegboard.core.json import Json, JsonObject
from pegboard.core.results.shapes import FIELDS_KEY, WRAPPER_KEY
from pegboard.core.schemas.schema_view import SchemaView, merge_branches
from pegboard.core.schemas.signatures import allowed_values, is_never, parameters_view, value_types

MODULES = (
    *("asyncio", "base64", "collections", "datetime", "decimal", "functools", "itertools", "json"),
    *("math", "random", "re", "time", "typing"),
)
"""Modules of the sandbox; a server of the same name gets an underscore."""

TYPE_PREFIX = "_type_"
SERVER_PREFIX = "_server_"

_HEAD = """\
from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict
"""
_TAKEN = frozenset(dir(builtins)) | frozenset(MODULES) | {"gather", "keep", "kept"}
_OURS = frozenset({"_server", "_others"})
"""Parameters that our definitions have themselves."""
SCALARS = {
    **{"string": "str", "integer": "int", "number": "float"},
    **{"boolean": "bool", "null": "None"},
}
_MAX_DEPTH = 8
_MAX_TYPES = 200
"""Named types for each tool; deeper objects of a huge schema are `dict[str, Any]`."""
_MAX_LITERALS = 200


@dataclass(frozen=True, slots=True)
class Stubs:
    """The text for the checker, the names of the tools, and the keys of each named type.

    `open_types` may have further keys that nobody listed; `learned_types` were learned from
    earlier results, and the next result may differ.
    """

    text: str
    names: frozenset[str]
    keys: Mapping[str, tuple[str, ...]]
    open_types: frozenset[str] = frozenset()
    learned_types: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ToolTypes:
    """One tool as a program sees it: its program name, its parameters, its result if known."""

    name: str
    parameters: JsonObject
    result: JsonObject | None = None
    is_learned: bool = False


def program_name(address: str) -> str:
    """The name of a tool in a program: `create_issue`, `github.create_issue`, `time_.now`."""
    server, dot, tool = address.replace("/", ".").partition(".")
    if not dot:
        return _free_identifier(server)
    return f"{_free_identifier(server)}.{parameter_name(tool)}"


def parameter_name(name: str) -> str:
    """The keyword argument of a parameter: `page_size` for `page-size`, `from_` for `from`."""
    # Python compares identifiers in this form, so letters of all languages stay as they are.
    made = re.sub(r"\W", "_", unicodedata.normalize("NFKC", name))
    # Two underscores in front would mean something else to Python, in a class and elsewhere.
    made = re.sub(r"^__+", "_", made) or "_"
    if not made.isidentifier():  # it begins with a digit, or has one that Python does not take
        made = f"_{re.sub(r'[^A-Za-z0-9_]', '_', made).lstrip('_')}"
    return f"{made}_" if keyword.iskeyword(made) or made in _OURS else made


def _free_identifier(name: str) -> str:
    """An identifier that hides no builtin and no module."""
    made = parameter_name(name)
    if made.startswith("_"):
        # The checker sees no name of the stubs that begins with an underscore.
        made = f"tool{made}"
    return f"{made}_" if made in _TAKEN else made


def unwrap_result_schema(schema: JsonObject | None) -> JsonObject | None:
    """The schema of what a program receives: without the wrapper that SDKs put around lists."""
    if schema is None:
        return None
    view = SchemaView.of(schema)
    if list(view.properties) != [WRAPPER_KEY]:
        return schema
    inner = view.properties[WRAPPER_KEY]
    if not isinstance(inner, dict):
        return None
    definitions = {key: view.root[key] for key in ("$defs", "definitions") if key in view.root}
    return {**definitions, **inner}


def build_stubs(tools: Iterable[ToolTypes], *, is_async: bool) -> Stubs:
    """Stubs of tools; those with a dotted name become members of one object per server."""
    writer = _StubWriter("async def" if is_async else "def")
    servers: dict[str, list[str]] = {}
    names: set[str] = set()
    for tool in tools:
        names.add(tool.name)
        server, dot, _ = tool.name.partition(".")
        line = writer.function(tool)
        if dot:
            servers.setdefault(server, []).append(f"    {line}\n")
        else:
            writer.lines.append(f"{line}\n")
    for server, members in servers.items():
        writer.lines.append(f"class {SERVER_PREFIX}{server}:\n{''.join(members)}")
        writer.lines.append(f"{server}: {SERVER_PREFIX}{server}\n")
    return Stubs(
        _HEAD + "".join(writer.lines),
        frozenset(names),
        writer.keys,
        frozenset(writer.open_types),
        frozenset(writer.learned_types),
    )


class _StubWriter:
    """Collects the named types of all tools, each before the line that uses it."""

    def __init__(self, define: str) -> None:
        self.define = define
        self.lines: list[str] = []
        self.keys: dict[str, tuple[str, ...]] = {}
        self.open_types: set[str] = set()
        self.learned_types: set[str] = set()
        self.left = 0

    def function(self, tool: ToolTypes) -> str:
        """The definition of one tool; its types are written first."""
        self.left = _MAX_TYPES  # for each tool, so that a huge one takes nothing from others
        server, _, name = tool.name.rpartition(".")
        prefix = TYPE_PREFIX + tool.name.replace(".", "_")
        view = parameters_view(tool.parameters)
        required = set(view.required)
        parameters: dict[str, str] = {}
        for member, inner in view.members.items():
            inside = view.at(inner)
            if is_never(inside) and member not in required:
                continue
            text = self._type(inside, f"{prefix}_{member}", 1, is_input=True)
            if member not in required:
                # The validator takes None for a parameter that is left out.
                text = f"{text} = ..." if text == "Any" else f"{text} | None = ..."
            parameters.setdefault(parameter_name(member), text)
        parameters.setdefault(FIELDS_KEY, "Sequence[str] = ...")
        texts = [f"{member}: {text}" for member, text in parameters.items()]
        if _takes_others(view):
            texts.append("**_others: Any")
        output, before = "Any", set(self.keys)
        if (result := unwrap_result_schema(tool.result)) is not None:
            output = self._type(SchemaView.of(result), prefix, 0, is_input=False)
        if tool.is_learned:
            self.learned_types |= self.keys.keys() - before
        texts = [*(["_server"] if server else []), "*", *texts]
        return f"{self.define} {name}({', '.join(texts)}) -> {output}: ..."

    def _type(self, view: SchemaView, name: str, depth: int, *, is_input: bool) -> str:
        """The type of a value; `name` is for a type that needs one."""
        if view.cut or depth > _MAX_DEPTH or not view.exact:
            return "Any"
        values, alternatives = allowed_values(view), view.alternatives
        if values is not None:
            return _literal_type(values, is_input=is_input)
        if alternatives:
            names = [f"{name}_{number}" if number else name for number in range(len(alternatives))]
            each = zip(alternatives, names, strict=True)
            texts = [self._type(one, label, depth + 1, is_input=is_input) for one, label in each]
        else:
            kinds = value_types(view)
            texts = [self._kind(kind, view, name, depth, is_input=is_input) for kind in kinds]
        return "Any" if not texts or "Any" in texts else " | ".join(dict.fromkeys(texts))

    def _kind(self, kind: str, view: SchemaView, name: str, depth: int, *, is_input: bool) -> str:
        if kind == "object":
            return self._object(merge_branches(view), name, depth, is_input=is_input)
        if kind != "array":
            return SCALARS[kind]
        items = view.schema.get("items", True)
        # A tuple of different types is rare, and indexing one is better left unchecked.
        inner = "Any"
        if isinstance(items, dict) and "prefixItems" not in view.schema:
            inner = self._type(view.at(items), name, depth + 1, is_input=is_input)
        return f"{'Sequence' if is_input else 'list'}[{inner}]"

    def _object(self, view: SchemaView, name: str, depth: int, *, is_input: bool) -> str:
        if not view.properties or self.left <= 0:
            if view.properties or not isinstance(view.extra, dict):
                return "dict[str, Any]"
            inner = self._type(view.at(view.extra), name, depth + 1, is_input=is_input)
            return f"dict[str, {inner}]"
        self.left -= 1
        required = set(view.required)
        fields: dict[str, str] = {}
        for member, schema in view.members.items():
            text = self._type(view.at(schema), f"{name}_{member}", depth + 1, is_input=is_input)
            fields[member] = text if member in required else f"NotRequired[{text}]"
        label = base = parameter_name(name)[:100]
        number = 2
        while label in self.keys:
            label, number = f"{base}_{number}", number + 1
        body = ", ".join(f"{member!r}: {text}" for member, text in fields.items())
        self.lines.append(f"{label} = TypedDict({label!r}, {{{body}}})\n")
        self.keys[label] = tuple(fields)
        if _takes_others(view):
            self.open_types.add(label)
        return label


def _takes_others(view: SchemaView) -> bool:
    return view.cut or view.extra is not False or "patternProperties" in view.schema


def _literal_type(values: Iterable[Json], *, is_input: bool) -> str:
    """The listed values, of a parameter; their types, of a result.

    A program compares and passes on what it gets, and a narrow type would only be in its way.
    """
    listed = list(values)
    are_literals = all(value is None or isinstance(value, (str, int, bool)) for value in listed)
    if is_input and len(listed) <= _MAX_LITERALS and are_literals:
        return f"Literal[{', '.join(dict.fromkeys(map(ascii, listed)))}]"
    kinds = {str: "str", int: "int", float: "float", bool: "bool", type(None): "None"}
    return " | ".join(dict.fromkeys(kinds.get(type(value), "Any") for value in listed))
