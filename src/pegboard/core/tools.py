"""The records of the catalogue: `Tool`, `Category`, `Example`, and the immutable `Catalog`.

A `Tool` is light until its schemas are asked for: it holds a `definition` that yields them, which
for a decorated function runs type inspection and for a kept catalogue parses JSON. Everything that
needs schemas (`input_schema`, `signature`, `digest`, ...) is therefore computed on access, and
listing a large catalogue by name costs only its names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from pegboard.core.json import Json, JsonObject, digest
from pegboard.errors import ConfigError

Risk: TypeAlias = Literal["read", "write", "destructive"]
RISKS: tuple[Risk, ...] = ("read", "write", "destructive")
RiskSource: TypeAlias = Literal["operator", "annotated", "inferred"]
"""Who says what a tool may do: a rule, the tool's annotations, or its name (`core.risk`)."""

SUMMARY_LIMIT = 80


class Schemas(NamedTuple):
    """What a tool takes and what it gives back."""

    input: JsonObject
    output: JsonObject | None = None
    originals: Mapping[str, str] = MappingProxyType({})
    """Names and values of `input` that are spelled for showing, with what the server calls them."""


Definition: TypeAlias = Callable[[], Schemas]
"""Yields schemas. One that holds what it has yielded may have a `read_once`, which does not."""


@dataclass(frozen=True, slots=True)
class Example:
    """One valid call of a tool, shown to whoever asks for its description."""

    description: str
    invocation: Mapping[str, Json]
    expected_output: Json = None


@dataclass(frozen=True, slots=True)
class Category:
    """A named group of tools, with how many of them are enabled."""

    name: str
    description: str = ""
    tool_count: int = 0


@dataclass(frozen=True, eq=False)
class Tool:
    """One callable thing. Equal when id and definition digest are equal.

    `id` is unique in a catalogue and never changes; `name` is what a client calls. For a tool of a
    server both start with the name that the configuration gives the server.

    What the configuration or the board's author decides (`id`, `server`, `category`, `name`) is all
    that permissions and addresses go by. What a server says of its tool (`section`, `summary`,
    `related`, `aliases`, `tags`) is text to show and to search.
    """

    name: str
    definition: Definition
    id: str = ""
    server: str | None = None
    category: str | None = None
    section: str | None = None
    """The server's own category for it: shown as `category/section`."""
    bare: str | None = None
    """The server's own name for it, where that cannot be taken for another tool's; else empty."""
    is_shown_bare: bool = False
    """Whether clients see `bare` as its name while no other tool that they see has it."""
    summary: str = ""
    description: str = ""
    title: str | None = None
    examples: tuple[Example, ...] = ()
    related: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    enabled: bool = True
    deprecated: str | None = None
    annotations: Mapping[str, Json] = field(default_factory=dict[str, Json])
    icons: tuple[JsonObject, ...] = ()
    execution: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """How a client may run it, such as `taskSupport`."""
    meta: Mapping[str, Json] = field(default_factory=dict[str, Json])
    risk: Risk = "write"
    risk_source: RiskSource = "inferred"
    projection_root: str | None = None
    field_aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Other names by which callers may ask for keys of the result, with those keys."""
    field_descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    """What fields of the result mean, for documentation; not part of the definition."""
    timeout: float | None = None
    raw_name: str | None = None
    """What its server calls it, where `id` cannot show that as it is."""

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(
                self, "id", f"{self.server}.{self.name}" if self.server else self.name
            )
        if self.bare is None:
            object.__setattr__(self, "bare", "" if _is_qualified(self.own_name) else self.own_name)

    @property
    def own_name(self) -> str:
        """What its own server calls it: the id without the server."""
        if self.raw_name is not None:
            return self.raw_name
        return self.id.removeprefix(f"{self.server}.") if self.server else self.name

    @property
    def input_schema(self) -> JsonObject:
        return self.definition().input

    @property
    def output_schema(self) -> JsonObject | None:
        return self.definition().output

    def read_once(self) -> Schemas:
        """Its schemas for who reads those of every tool in turn: they are not held afterwards."""
        return getattr(self.definition, "read_once", self.definition)()

    @cached_property
    def signature(self) -> str:
        """How to call it, on one line: `create_issue(title: str, priority?: "low"|"high")`."""
        from pegboard.core.schemas import (
            format_signature,  # the reader of schemas loads when one is read
        )

        return format_signature(self.name, self.input_schema)

    @cached_property
    def output_fields(self) -> tuple[str, ...]:
        """The dotted paths that `include_fields` may name; empty when no output schema is known."""
        from pegboard.core.schemas import list_output_fields

        return tuple(list_output_fields(self.output_schema)) if self.output_schema else ()

    @cached_property
    def returns(self) -> str:
        """The shape of its results, as in `{issues[]{key, title}, total}`; empty if unknown."""
        from pegboard.core.schemas import format_result_shape

        return format_result_shape(self.output_schema)

    @cached_property
    def digest(self) -> str:
        """Sha-256 of what a client would be shown; changes exactly when the definition does."""
        return digest(self.wire())

    def wire(self) -> JsonObject:
        """The full `tools/list` entry, key order fixed so that prompt caches hold."""
        schemas = self.definition()
        entry: JsonObject = {"name": self.name}
        if self.title:
            entry["title"] = self.title
        if self.description:
            entry["description"] = self.description
        entry["inputSchema"] = schemas.input
        if schemas.output is not None:
            entry["outputSchema"] = schemas.output
        if self.annotations:
            entry["annotations"] = dict(self.annotations)
        if self.execution:
            entry["execution"] = dict(self.execution)
        if self.icons:
            entry["icons"] = list(self.icons)
        if self.meta:
            entry["_meta"] = dict(self.meta)
        return entry

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tool) and self.id == other.id and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.id)


def _grouped(tools: Iterable[Tool], key: Callable[[Tool], str]) -> dict[str, tuple[Tool, ...]]:
    found: dict[str, list[Tool]] = {}
    for tool in tools:
        found.setdefault(key(tool), []).append(tool)
    return {name: tuple(same) for name, same in found.items()}


def split_qualified_name(name: str) -> Iterator[tuple[str, str]]:
    """Every way to read a name as group and tool, since both may contain separators."""
    for at, character in enumerate(name):
        if character in "./" and 0 < at < len(name) - 1:
            yield name[:at], name[at + 1 :]


def _is_qualified(name: str) -> bool:
    """Whether a name may be read as that of a tool in some group."""
    return "." in name or "/" in name


def group_name(tool: Tool) -> str:
    """The one group a tool is shown under where tools are shown by group.

    A server's own category stands behind the configured one, so it never joins another server's.
    """
    group = tool.category or tool.server or "general"
    return f"{group}/{tool.section}" if tool.section else group


def is_in_group(tool: Tool, group: str) -> bool:
    """Whether a tool is meant by the name of a category, a server, or a group as it is shown."""
    return group in (tool.category, tool.server, group_name(tool))


def constant_definition(
    input_schema: JsonObject, output_schema: JsonObject | None = None
) -> Definition:
    """A definition that is already there.

    Raises:
        ConfigError: The input schema is not one of an object.
    """
    schemas = Schemas(require_object_schema(input_schema), output_schema)
    return lambda: schemas


def parse_execution(entry: Mapping[str, Json]) -> JsonObject:
    """The `execution` of a `tools/list` entry, without a value that a client would refuse.

    SDK clients refuse a whole list for one value of `taskSupport` that they do not know.
    """
    given = entry.get("execution")
    if not isinstance(given, dict):
        return {}
    known = given.get("taskSupport") in ("forbidden", "optional", "required")
    return given if known else {k: v for k, v in given.items() if k != "taskSupport"}


def check_summary(summary: str, tool: str) -> str:
    """A person's own summary, or an error that says how long it is."""
    text = " ".join(summary.split())
    if len(text) > SUMMARY_LIMIT:
        raise ConfigError(
            f"The summary of {tool!r} has {len(text)} characters; at most {SUMMARY_LIMIT} fit a "
            f"listing. Shorten it and keep the rest in the description.",
            tool=tool,
        )
    return text


def derive_summary(description: str) -> str:
    """The first sentence of a description, cut at a word where it is too long."""
    text = " ".join(description.split())
    for stop in (". ", "! ", "? ", ": "):
        head, found, _ = text.partition(stop)
        if found and 8 <= len(head) < len(text):
            text = head
    text = text.rstrip(".:")
    if len(text) <= SUMMARY_LIMIT:
        return text
    return text[: SUMMARY_LIMIT - 1].rsplit(" ", 1)[0].rstrip(",;:-( ") + "…"


class Catalog:
    """An immutable snapshot of tools, ordered by category then name, with a content hash."""

    def __init__(self, tools: Iterable[Tool], categories: Iterable[Category] = ()) -> None:
        ordered = sorted(tools, key=lambda t: (t.server or "", t.category or "", t.name, t.id))
        self._by_id: dict[str, Tool] = {}
        for tool in ordered:
            if tool.id in self._by_id:
                raise ConfigError(f"Two tools have the id {tool.id!r}.", tool=tool.id)
            self._by_id[tool.id] = tool
        self.tools: tuple[Tool, ...] = tuple(ordered)
        self._described = {c.name: c.description for c in categories}
        self.memo: dict[object, Json] = {}
        """What was worked out from this catalogue, such as listings."""

    def __len__(self) -> int:
        return len(self.tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools)

    def get(self, tool_id: str) -> Tool | None:
        """The tool of that id."""
        return self._by_id.get(tool_id)

    def named(self, name: str) -> tuple[Tool, ...]:
        """All tools of that bare name."""
        return self._by_name.get(name, ())

    def matching(self, name: str, group: str | None = None) -> list[Tool]:
        """Every tool that a name may mean: an id, a bare name, or `group.tool` and `group/tool`.

        A bare name is the one that clients see or, where no tool is seen under it, the one that the
        tool's own server has for it, unless that could be read as a name in some group: else a
        server could answer for another by calling its tool `github.create_pr`. With `group`, only
        tools of that category or server are meant.
        """
        if group is not None:
            return self._in_group(name, group) or [
                t for t in self.matching(name) if is_in_group(t, group)
            ]
        if tool := self._by_id.get(name):
            return [tool]
        for known in (self._by_name, self._by_shown_bare_name, self._by_bare_name):
            if bare := known.get(name):
                return list(bare)
        read = {
            t.id: t
            for group, rest in split_qualified_name(name)
            for t in self._in_group(rest, group)
        }
        return list(read.values())

    def _in_group(self, name: str, group: str) -> list[Tool]:
        for known in (self._by_name, self._by_own_name):
            if found := [t for t in known.get(name, ()) if is_in_group(t, group)]:
                return found
        return []

    def related(self, tool: Tool) -> list[Tool]:
        """The related tools that are here; those of a server's tool are of the same server."""
        if tool.server is not None:
            return [found for name in tool.related if (found := self._by_id.get(name))]
        return [found for name in tool.related for found in self.matching(name)]

    def address(self, tool: Tool) -> str:
        """The shortest name that finds this tool and no other; what clients are shown.

        Only tools of this catalogue count, so one that a caller may not see changes no name.
        """
        groups = [group for group in (tool.server, tool.category) if group]
        bare = [tool.bare] if tool.is_shown_bare and tool.bare else []
        for name in (*bare, tool.name, *(f"{group}.{tool.name}" for group in groups)):
            found = self.matching(name)
            if len(found) == 1 and found[0].id == tool.id:
                return name
        return tool.id

    @cached_property
    def _by_name(self) -> dict[str, tuple[Tool, ...]]:
        return _grouped(self.tools, lambda tool: tool.name)

    @cached_property
    def _by_own_name(self) -> dict[str, tuple[Tool, ...]]:
        """The tools that clients see under another name than their servers have for them."""
        return _grouped((t for t in self.tools if t.own_name != t.name), lambda t: t.own_name)

    @cached_property
    def _by_shown_bare_name(self) -> dict[str, tuple[Tool, ...]]:
        return _grouped((t for t in self.tools if t.is_shown_bare), lambda t: t.bare or "")

    @cached_property
    def _by_bare_name(self) -> dict[str, tuple[Tool, ...]]:
        others = (t for t in self.tools if t.bare and t.bare != t.name)
        return _grouped(others, lambda t: t.bare or "")

    @cached_property
    def hash(self) -> str:
        """Sha-256 over the ids and digests of the tools: equal catalogues have equal hashes."""
        return digest([[t.id, t.digest, t.enabled, group_name(t)] for t in self.tools])

    @cached_property
    def categories(self) -> tuple[Category, ...]:
        """All categories with the number of enabled tools in each, by name."""
        counts: dict[str, int] = dict.fromkeys(self._described, 0)
        for tool in self.tools:
            if tool.category:
                counts[tool.category] = counts.get(tool.category, 0) + tool.enabled
        return tuple(
            Category(name, self._described.get(name, ""), counts[name]) for name in sorted(counts)
        )

    @cached_property
    def groups(self) -> tuple[Category, ...]:
        """Every enabled tool in one group: its category, else its server, else `general`.

        A category whose tools are all in sections is no group of its own.
        """
        known = {c.name: c.description for c in self.categories}
        divided = {tool.category for tool in self.tools if tool.section}
        counts = {name: 0 for name in known if name not in divided}
        for tool in self.enabled:
            counts[group_name(tool)] = counts.get(group_name(tool), 0) + 1
        return tuple(Category(n, known.get(n, ""), counts[n]) for n in sorted(counts))

    def group(self, name: str) -> tuple[Tool, ...]:
        """The tools of one group, switched off or not."""
        return tuple(t for t in self.tools if group_name(t) == name)

    @cached_property
    def enabled(self) -> tuple[Tool, ...]:
        return tuple(t for t in self.tools if t.enabled)

    def only(self, keep: Callable[[Tool], bool]) -> Catalog:
        """The catalogue as somebody sees it who may see only these tools."""
        kept = [t for t in self.tools if keep(t)]
        if len(kept) == len(self.tools):
            return self
        present = {t.category for t in kept}
        return Catalog(kept, [c for c in self.categories if c.name in present])


def set_enabled(tool: Tool, enabled: bool) -> Tool:
    """The same tool, switched on or off."""
    return tool if tool.enabled == enabled else replace(tool, enabled=enabled)


def require_object_schema(schema: Json) -> JsonObject:
    """The schema as MCP wants it, an object at the root, or an error that says what it is."""
    from pegboard.core.schemas import unwrap_root

    if isinstance(schema, dict) and unwrap_root(schema).get("type", "object") == "object":
        return schema
    raise ConfigError(
        "An input schema must be a JSON Schema object with type 'object'; "
        f"got {type(schema).__name__ if not isinstance(schema, dict) else schema.get('type')!r}."
    )
