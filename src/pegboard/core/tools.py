"""The records of the catalog: `Tool`, `Category`, `Example`, and the immutable `Catalog`.

A `Tool` is light until its schemas are needed: it has a `definition`, a function that returns them.
For a decorated function that runs type inspection, for a cached catalog it parses JSON. Everything
that needs schemas (`input_schema`, `signature`, `digest`, ...) is computed on access, so listing a
large catalog by name touches only names.

    id        unique, never changes                                   github.create_issue
    name      what clients call                                       github_create_issue
    own name  what its server calls it                                create_issue
    bare      the own name, if it cannot be mistaken for another      create_issue
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
"""What the risk comes from: a rule, the tool's annotations, or its name (`core.risk`)."""

SUMMARY_LIMIT = 80


class Schemas(NamedTuple):
    """The input and output schemas of a tool."""

    input: JsonObject
    output: JsonObject | None = None
    originals: Mapping[str, str] = MappingProxyType({})
    """Names and values of `input` that were escaped for display, with the server's originals."""


Definition: TypeAlias = Callable[[], Schemas]
"""Returns schemas. One that caches them may have a `read_once`, which does not."""


@dataclass(frozen=True, slots=True)
class Example:
    """One valid call to a tool, shown with its description."""

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

    For a tool of a server, `id` and `name` start with the name that the configuration gives the
    server.

    Permissions and name resolution use only what the configuration or the board's author decides:
    `id`, `server`, `category`, `name`. What a server says of its tool (`section`, `summary`,
    `related`, `aliases`, `tags`) is only shown and searched.
    """

    name: str
    definition: Definition
    id: str = ""
    server: str | None = None
    category: str | None = None
    section: str | None = None
    """The server's own category: shown as `category/section`."""
    bare: str | None = None
    """The server's own name, if it cannot be mistaken for another tool's; else empty."""
    is_shown_bare: bool = False
    """Whether clients see `bare` as its name, as long as no other tool that they see has it."""
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
    """Other names for keys of the result that callers may use, with those keys."""
    field_descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Descriptions of fields of the result for the field reference; not in the definition."""
    timeout: float | None = None
    raw_name: str | None = None
    """What its server calls it, where `id` shows an escaped form of it."""

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(
                self, "id", f"{self.server}.{self.name}" if self.server else self.name
            )
        if self.bare is None:
            # A name with a separator could be read as a tool of some group.
            is_qualified = "." in self.own_name or "/" in self.own_name
            object.__setattr__(self, "bare", "" if is_qualified else self.own_name)

    @property
    def own_name(self) -> str:
        """What its own server calls it: the id without the server's name."""
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
        """Its schemas, without caching them: for code that reads those of every tool."""
        return getattr(self.definition, "read_once", self.definition)()

    @cached_property
    def signature(self) -> str:
        """How to call it, on one line: `create_issue(title: str, priority?: "low"|"high")`."""
        # Imported here and below: many processes list names only, and never read a schema.
        from pegboard.core.schemas import format_signature

        return format_signature(self.name, self.input_schema)

    @cached_property
    def output_fields(self) -> tuple[str, ...]:
        """The dotted paths that `include_fields` may name; empty when no output schema is known."""
        from pegboard.core.schemas import list_output_fields

        return tuple(list_output_fields(self.output_schema)) if self.output_schema else ()

    @cached_property
    def returns(self) -> str:
        """The shape of its results, such as `{issues[]{key, title}, total}`; empty if unknown."""
        from pegboard.core.schemas import format_result_shape

        return format_result_shape(self.output_schema)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the full `tools/list` entry; changes exactly when the definition does."""
        return digest(self.wire())

    def wire(self) -> JsonObject:
        """The full `tools/list` entry, keys in a fixed order so that prompt caches stay valid."""
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
        # Definitions are functions and compare by identity, so their digest is compared.
        return isinstance(other, Tool) and self.id == other.id and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.id)


def _group_by(tools: Iterable[Tool], key: Callable[[Tool], str]) -> dict[str, tuple[Tool, ...]]:
    found: dict[str, list[Tool]] = {}
    for tool in tools:
        found.setdefault(key(tool), []).append(tool)
    return {name: tuple(same) for name, same in found.items()}


def split_qualified_name(name: str) -> Iterator[tuple[str, str]]:
    """Every way to split a name into group and tool, since both may contain separators."""
    for at, character in enumerate(name):
        if character in "./" and 0 < at < len(name) - 1:
            yield name[:at], name[at + 1 :]


def group_name(tool: Tool) -> str:
    """The group under which a tool is shown.

    A server's own category comes after the configured one, so it never merges with another
    server's.
    """
    group = tool.category or tool.server or "general"
    return f"{group}/{tool.section}" if tool.section else group


def is_in_group(tool: Tool, group: str) -> bool:
    """Whether a tool belongs to a category, a server, or a group by the name that is shown."""
    return group in (tool.category, tool.server, group_name(tool))


def constant_definition(
    input_schema: JsonObject, output_schema: JsonObject | None = None
) -> Definition:
    """A definition that returns these schemas.

    Raises:
        ConfigError: The input schema does not describe an object.
    """
    schemas = Schemas(require_object_schema(input_schema), output_schema)
    return lambda: schemas


def parse_execution(entry: Mapping[str, Json]) -> JsonObject:
    """The `execution` of a `tools/list` entry, without values that clients would refuse.

    Clients of the SDK refuse a whole list because of one unknown value of `taskSupport`.
    """
    given = entry.get("execution")
    if not isinstance(given, dict):
        return {}
    known = given.get("taskSupport") in ("forbidden", "optional", "required")
    return given if known else {k: v for k, v in given.items() if k != "taskSupport"}


def check_summary(summary: str, tool: str) -> str:
    """An author's summary on one line, or an error if it is too long."""
    text = " ".join(summary.split())
    if len(text) > SUMMARY_LIMIT:
        raise ConfigError(
            f"The summary of {tool!r} has {len(text)} characters; at most {SUMMARY_LIMIT} "
            f"are allowed. Shorten it and move the rest into the description.",
            tool=tool,
        )
    return text


def derive_summary(description: str) -> str:
    """The first sentence of a description, cut at a word where it is too long."""
    text = " ".join(description.split())
    for stop in (". ", "! ", "? ", ": "):
        head, found, _ = text.partition(stop)
        if found and 8 <= len(head) < len(text):  # a shorter one is an abbreviation, such as `e.g.`
            text = head
    text = text.rstrip(".:")
    if len(text) <= SUMMARY_LIMIT:
        return text
    return text[: SUMMARY_LIMIT - 1].rsplit(" ", 1)[0].rstrip(",;:-( ") + "…"


class Catalog:
    """An immutable snapshot of tools, ordered by category then name, with a content hash."""

    def __init__(self, tools: Iterable[Tool], categories: Iterable[Category] = ()) -> None:
        # A stable order: the same tools give the same list, so that prompt caches stay valid.
        ordered = sorted(tools, key=lambda t: (t.server or "", t.category or "", t.name, t.id))
        self._by_id: dict[str, Tool] = {}
        for tool in ordered:
            if tool.id in self._by_id:
                raise ConfigError(f"Two tools have the id {tool.id!r}.", tool=tool.id)
            self._by_id[tool.id] = tool
        self.tools: tuple[Tool, ...] = tuple(ordered)
        self._described = {c.name: c.description for c in categories}
        self.memo: dict[object, Json] = {}
        """Values derived from this catalog, such as listings; a new catalog starts without any."""

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

        A bare name is the name that clients see. If no tool is shown under it, it is the name that
        the tool's own server uses, unless that could be read as a tool of some group: otherwise a
        server could impersonate another by naming its tool `github.create_pr`. With `group`, only
        tools of that category or server match.
        """
        if group is not None:
            return self._in_group(name, group) or [
                t for t in self.matching(name) if is_in_group(t, group)
            ]
        if tool := self._by_id.get(name):
            return [tool]
        # From what the configuration decides to what servers decide: the first that knows the name
        # wins, so that a server cannot take a name away from another tool.
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
        """The related tools in this catalog; for a tool of a server, only tools of that server."""
        if tool.server is not None:  # these names carry the server (`parse_details`)
            return [found for name in tool.related if (found := self._by_id.get(name))]
        return [found for name in tool.related for found in self.matching(name)]

    def address(self, tool: Tool) -> str:
        """The shortest name that finds this tool and no other; this is what clients see.

        Only tools of this catalog count, so a tool that the caller may not see affects no name.
        """
        groups = [group for group in (tool.server, tool.category) if group]
        bare = [tool.bare] if tool.is_shown_bare and tool.bare else []
        for name in (*bare, tool.name, *(f"{group}.{tool.name}" for group in groups)):
            found = self.matching(name)
            if len(found) == 1 and found[0].id == tool.id:
                return name
        return tool.id

    def as_shown(self, tool: Tool) -> Tool:
        """The tool under the name that clients see, for people who look at it."""
        return replace(tool, name=self.address(tool))

    @cached_property
    def _by_name(self) -> dict[str, tuple[Tool, ...]]:
        return _group_by(self.tools, lambda tool: tool.name)

    @cached_property
    def _by_own_name(self) -> dict[str, tuple[Tool, ...]]:
        """The tools that clients see under another name than their own servers use."""
        return _group_by((t for t in self.tools if t.own_name != t.name), lambda t: t.own_name)

    @cached_property
    def _by_shown_bare_name(self) -> dict[str, tuple[Tool, ...]]:
        return _group_by((t for t in self.tools if t.is_shown_bare), lambda t: t.bare or "")

    @cached_property
    def _by_bare_name(self) -> dict[str, tuple[Tool, ...]]:
        others = (t for t in self.tools if t.bare and t.bare != t.name)
        return _group_by(others, lambda t: t.bare or "")

    @cached_property
    def hash(self) -> str:
        """SHA-256 over the ids and digests of the tools: equal catalogs have equal hashes."""
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

        A category whose tools are all in sections is not a group itself.
        """
        # A category without tools (its loader has not run) is a group as well.
        known = {c.name: c.description for c in self.categories}
        divided = {tool.category for tool in self.tools if tool.section}
        counts = {name: 0 for name in known if name not in divided}
        for tool in self.enabled:
            counts[group_name(tool)] = counts.get(group_name(tool), 0) + 1
        return tuple(Category(n, known.get(n, ""), counts[n]) for n in sorted(counts))

    def group(self, name: str) -> tuple[Tool, ...]:
        """The tools of one group, enabled or not."""
        return tuple(t for t in self.tools if group_name(t) == name)

    @cached_property
    def enabled(self) -> tuple[Tool, ...]:
        return tuple(t for t in self.tools if t.enabled)

    def only(self, is_visible: Callable[[Tool], bool]) -> Catalog:
        """The catalog for a caller who may see only these tools."""
        visible = [t for t in self.tools if is_visible(t)]
        if len(visible) == len(self.tools):  # the same object, with everything derived from it
            return self
        present = {t.category for t in visible}
        return Catalog(visible, [c for c in self.categories if c.name in present])


def set_enabled(tool: Tool, enabled: bool) -> Tool:
    """The same tool, enabled or disabled."""
    return tool if tool.enabled == enabled else replace(tool, enabled=enabled)


def require_object_schema(schema: Json) -> JsonObject:
    """The schema, if it describes an object as MCP requires; else an error that says what it is."""
    from pegboard.core.schemas import unwrap_root

    if isinstance(schema, dict) and unwrap_root(schema).get("type", "object") == "object":
        return schema
    raise ConfigError(
        "An input schema must be a JSON Schema object with type 'object'; "
        f"got {type(schema).__name__ if not isinstance(schema, dict) else schema.get('type')!r}."
    )
