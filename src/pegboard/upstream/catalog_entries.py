"""Entries of a server's `tools/list`: checks, conversion to `Tool`s, and who sees which.

A server may list anything. One invalid entry must not affect the others, as it does in SDK clients,
which reject the whole list. So each entry is checked on its own, and what is wrong with it is a
`ToolProblem` that a person can act on.

Some servers list different tools to clients that they can send requests to: sampling, elicitation,
roots. A client's *kind* is what it declares of these, as a text such as `elicitation.form+roots`;
it is empty for a client that declares nothing. What a server lists is recorded for each kind seen:

    {"roots": None}                          the same as for a client that declares nothing
    {"": ["echo"], "roots": ["echo", "ls"]}  by kind; a kind that is missing sees what "" sees

The catalog of a server holds each tool once, whichever clients it is listed to, so that the lock,
search and names cover all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pegboard.core.json import Json, JsonObject, is_within_bounds
from pegboard.core.risk import assess_risk
from pegboard.core.tool_parser import parse_details, without_own_keys
from pegboard.core.tools import (
    Definition,
    Schemas,
    Tool,
    derive_summary,
    parse_execution,
    require_object_schema,
)
from pegboard.errors import ConfigError
from pegboard.upstream.namespaces import Namespaces

MAX_DEPTH: Final = 200
MAX_NODES: Final = 200_000
MAX_NAME_LENGTH: Final = 512
_SPEC_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_FIELD_TYPES: Final[dict[str, type]] = {
    "title": str,
    "description": str,
    "annotations": dict,
    "icons": list,
    "execution": dict,
    "_meta": dict,
    "outputSchema": dict,
}

ClientKind: TypeAlias = str
ToolVariants: TypeAlias = Mapping[ClientKind, Sequence[str] | None]
"""The names of the tools that clients of each kind are listed."""

PLAIN_CLIENT: Final[ClientKind] = ""
"""A client that declares none of these capabilities."""
_ELICITATION_MODES: Final = ("form", "url")


# Checking entries.


@dataclass(frozen=True, slots=True)
class ToolProblem:
    """What is wrong with one entry; `left_out` when it could not be made a tool."""

    server: str
    tool: str
    message: str
    left_out: bool = True

    def __str__(self) -> str:
        return f"{self.server}: {self.tool}: {self.message}"


def check_entries(
    entries: Iterable[Json], server: str
) -> tuple[list[JsonObject], list[ToolProblem]]:
    """The entries that are tools, each once and without malformed parts, and what was wrong."""
    good: dict[str, JsonObject] = {}
    problems: list[ToolProblem] = []
    for number, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name.strip():
            name = None
        label = name or f"entry {number}"
        if reason := _find_defect(entry, name) or ("it is listed twice" if name in good else None):
            shown = label[:MAX_NAME_LENGTH]
            problems.append(ToolProblem(server, shown, f"{reason}; it is left out."))
            continue
        if not _SPEC_NAME.fullmatch(label):
            message = "its name is not valid in MCP; it gets another name here."
            problems.append(ToolProblem(server, label, message, left_out=False))
        malformed = [key for key in _FIELD_TYPES if _is_malformed(entry, key)]
        for key in malformed:
            message = f"its `{key}` is malformed and is not used."
            problems.append(ToolProblem(server, label, message, left_out=False))
        good[label] = {k: v for k, v in entry.items() if k not in malformed}
    return list(good.values()), problems


def _find_defect(entry: Json, name: str | None) -> str | None:
    """Why no tool can be made of an entry; `None` when one can."""
    if not isinstance(entry, dict):
        return f"it is not an object but {type(entry).__name__}"
    if name is None:
        return "it has no name"
    if len(name) > MAX_NAME_LENGTH:
        return f"its name has {len(name):,} characters; at most {MAX_NAME_LENGTH} are allowed"
    if not isinstance(entry.get("inputSchema"), dict):
        return "it has no `inputSchema` object"
    # Everything that walks a schema later may recurse, and relies on this bound.
    if not is_within_bounds(entry, depth=MAX_DEPTH, nodes=MAX_NODES):
        return f"it has more than {MAX_DEPTH} levels or {MAX_NODES:,} parts"
    try:
        require_object_schema(entry["inputSchema"])
    except ConfigError:
        return f"its `inputSchema` is of type {entry['inputSchema'].get('type')!r}, not 'object'"
    return None


def _is_malformed(entry: JsonObject, key: str) -> bool:
    value: Json = entry.get(key)
    if value is None:
        return False
    if key == "icons" and isinstance(value, Sequence):
        return not all(isinstance(icon, dict) for icon in value)
    return not isinstance(value, _FIELD_TYPES[key])


def get_schemas(entry: Mapping[str, Json]) -> Schemas:
    """Both schemas of a checked entry; that of the input always has `type: object`."""
    schema: JsonObject = entry["inputSchema"]
    if "type" not in schema and "$ref" not in schema:
        schema = {"type": "object", **schema}
    return Schemas(schema, entry.get("outputSchema"))


# Making tools of them.


@dataclass(frozen=True, slots=True)
class ToolFactory:
    """Makes the tools of one server, as configured."""

    server: str
    names: Namespaces
    category: str | None = None
    shows: Callable[[str], bool] | None = None

    def build(self, entry: JsonObject, definition: Definition) -> Tool:
        """One checked entry as a tool.

        Its id, names and category come from the configuration and the server's name for it.
        Everything else that the server sends is only displayed.
        """
        own = entry["name"]
        annotations = entry.get("annotations") or {}
        meta = entry.get("_meta") or {}
        description = entry.get("description") or ""
        details = parse_details(meta, self.server)
        name, bare, is_shown_bare = self.names.of(self.server, own)
        risk, risk_source = assess_risk(own, annotations, self.server)
        return Tool(
            name=name,
            definition=definition,
            id=f"{self.server}.{own}",
            server=self.server,
            category=self.category or self.server,
            section=details.section,
            bare=bare,
            is_shown_bare=is_shown_bare,
            summary=details.summary or derive_summary(description),
            description=description,
            title=entry.get("title"),
            examples=details.examples,
            related=details.related,
            aliases=details.aliases,
            tags=details.tags,
            deprecated=details.deprecated,
            field_descriptions=details.fields,
            annotations=annotations,
            icons=tuple(entry.get("icons") or ()),
            execution=parse_execution(entry),
            meta=without_own_keys(meta),
            risk=risk,
            risk_source=risk_source,
        )

    def wants(self, name: str) -> bool:
        """Whether the configuration shows this tool."""
        return self.shows is None or self.shows(name)


# Which clients are listed which tools.


def capabilities_to_kind(capabilities: Mapping[str, Json]) -> ClientKind:
    """The kind of a client that declares these capabilities."""
    parts = [name for name in ("roots", "sampling") if capabilities.get(name) is not None]
    elicitation = capabilities.get("elicitation")
    if isinstance(elicitation, dict):
        # Before 2025-11-25 there was one mode, and an empty object meant it.
        modes = [mode for mode in _ELICITATION_MODES if mode in elicitation] or ["form"]
        parts += [f"elicitation.{mode}" for mode in modes]
    return "+".join(sorted(parts))


def kind_to_capabilities(kind: ClientKind) -> JsonObject:
    """What a client of a kind declares."""
    declared: JsonObject = {}
    for part in filter(None, kind.split("+")):
        name, _, mode = part.partition(".")
        members = declared.setdefault(name, {})
        if mode:
            members[mode] = {}
    return declared


def is_kind_known(variants: ToolVariants, kind: ClientKind) -> bool:
    """Whether it is known what clients of a kind are listed."""
    parts = set(kind.split("+"))
    # A server that lists nothing extra to a client that declares more lists nothing extra to one
    # that declares less, so not every combination has to be tried.
    return not kind or any(
        kind == other or (listed is None and parts <= set(other.split("+")))
        for other, listed in variants.items()
    )


def find_uniform_kinds(variants: ToolVariants) -> tuple[ClientKind, ...]:
    """The kinds of clients that are known to be listed the same as one that declares nothing."""
    return (PLAIN_CLIENT, *(kind for kind, listed in variants.items() if kind and listed is None))


def find_varying_kinds(variants: ToolVariants) -> list[ClientKind]:
    """The kinds of clients that are listed something else."""
    return [kind for kind, listed in variants.items() if kind and listed is not None]


def get_listed_tools(variants: ToolVariants, kind: ClientKind) -> Sequence[str] | None:
    """The names of the tools that clients of a kind see; `None` for all of them."""
    return variants.get(kind) or variants.get(PLAIN_CLIENT)


def merge_variant(
    entries: Sequence[JsonObject],
    variants: ToolVariants,
    kind: ClientKind,
    listed: Iterable[JsonObject],
) -> tuple[list[JsonObject], dict[ClientKind, Sequence[str] | None]]:
    """A catalog and its variants, with what clients of one more kind are listed."""
    known = [str(entry.get("name")) for entry in entries]
    plain = list(get_listed_tools(variants, PLAIN_CLIENT) or known)
    more = {str(entry.get("name")): entry for entry in listed}
    if set(more) == set(plain):
        return list(entries), {**variants, kind: None}
    added = [entry for name, entry in more.items() if name not in known]
    return [*entries, *added], {**variants, PLAIN_CLIENT: plain, kind: list(more)}
