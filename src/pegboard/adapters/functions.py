"""Python functions as tools: schemas from type hints and docstring.

The SDK's own `Tool.from_function` does the work, so that a function means the same here as on an
`MCPServer`: pydantic models, `Annotated[..., Field(...)]`, a `Context` parameter, resolvers. The
SDK is imported on first use, because that takes 0.6 s of CPU and a board may never be called.

For the same reason functions with ordinary type hints get their schemas from pydantic alone as long
as nothing has imported the SDK: importing it would be most of the cost of the first schema in a
test, a script or a command. A test holds these schemas equal to the SDK's, byte for byte.
Everything else (dataclasses, typed dictionaries, hints of the SDK itself, mistakes) goes to the
SDK.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict, Union, get_args, get_origin

from pegboard.core.caches import SchemaCache
from pegboard.core.calls import CallResult, ToolCall
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.risk import assess_risk
from pegboard.core.tools import (
    Example,
    Schemas,
    Tool,
    check_summary,
    derive_summary,
    require_object_schema,
)
from pegboard.errors import ConfigError, InvalidArguments, PegboardError, ToolError, UpstreamError

if TYPE_CHECKING:
    from mcp.server.mcpserver.context import Context
    from mcp.server.mcpserver.tools.base import Tool as SdkTool


Function: TypeAlias = Callable[..., Any]


class ToolKeywords(TypedDict, total=False):
    """The keywords of `@board.tool(...)`; defaults come from the function."""

    category: str | None
    summary: str | None
    """At most 80 characters, for listings; else the first sentence of the description."""
    description: str | None
    """What a model reads; else the docstring without its sections."""
    title: str | None
    examples: Sequence[Example | Mapping[str, Json]]
    """Valid calls, checked when the board starts. An invocation is a mapping of arguments, or the
    text of a call: `search(query="x")`."""
    related: Sequence[str]
    """Names of tools that go with this one, checked when the board starts."""
    aliases: Sequence[str]
    """Other words that people search by."""
    tags: Sequence[str]
    enabled: bool
    deprecated: str | bool | None
    """Why not to use it any more, and what to use instead."""
    annotations: Mapping[str, Json] | None
    """MCP annotations: `readOnlyHint`, `destructiveHint`, `idempotentHint`, `openWorldHint`."""
    icons: Sequence[JsonObject]
    meta: Mapping[str, Json]
    projection_root: str | None
    """The key of the result inside which `include_fields` starts."""
    field_aliases: Mapping[str, str]
    """Other names for keys of the result, as in `{"description": "task_description"}`."""
    field_descriptions: Mapping[str, str]
    """What fields of the result mean, by name or by the end of a path (`issues.key`). For the field
    reference only: unlike descriptions in the types, they are not sent with the schema."""
    timeout: float | None
    """Seconds after which a call is given up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Registration:
    """`ToolKeywords` with their defaults, and the name."""

    name: str | None = None
    category: str | None = None
    summary: str | None = None
    description: str | None = None
    title: str | None = None
    examples: Sequence[Example | Mapping[str, Json]] = ()
    related: Sequence[str] = ()
    aliases: Sequence[str] = ()
    tags: Sequence[str] = ()
    enabled: bool = True
    deprecated: str | bool | None = None
    annotations: Mapping[str, Json] | None = None
    icons: Sequence[JsonObject] = ()
    meta: Mapping[str, Json] = field(default_factory=dict[str, Json])
    projection_root: str | None = None
    field_aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    field_descriptions: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout: float | None = None

    def parse_examples(self) -> tuple[Example, ...]:
        """The examples as values. Raises `ConfigError` for one with unknown keys."""
        examples: list[Example] = []
        for given in self.examples:
            try:
                examples.append(given if isinstance(given, Example) else Example(**given))
            except TypeError as exc:
                raise ConfigError(
                    "An example has description, invocation and optionally expected_output; "
                    f"got {compact(given)}."
                ) from exc
        return tuple(examples)


class FunctionTools:
    """The functions registered on one board: creates a `Tool` for each and runs its calls."""

    def __init__(self, schemas: SchemaCache) -> None:
        self._schemas = schemas

    def make(self, fn: Function, given: Registration) -> Tool:
        """The `Tool` of a function; its schemas are generated on first access."""
        name = given.name or getattr(fn, "__name__", "")
        if not name or name == "<lambda>":
            raise ConfigError("A lambda has no name: give it one with name=...")
        doc = _Docstring.parse(fn)
        description = given.description or doc.text
        annotations = dict(given.annotations or {})
        risk, risk_source = assess_risk(name, annotations)
        tool_id = f"{given.category}.{name}" if given.category else name
        function = _Function(fn, name, description, doc.parameters)
        return Tool(
            name=name,
            definition=_Definition(function, self._schemas, tool_id),
            id=tool_id,
            category=given.category,
            summary=check_summary(given.summary, name)
            if given.summary is not None
            else derive_summary(description or name.replace("_", " ")),
            description=description,
            title=given.title,
            examples=given.parse_examples(),
            related=tuple(given.related),
            aliases=tuple(given.aliases),
            tags=tuple(given.tags),
            enabled=given.enabled,
            deprecated=f"{name} is deprecated."
            if given.deprecated is True
            else given.deprecated or None,
            annotations=annotations,
            icons=tuple(given.icons),
            meta=dict(given.meta),
            risk=risk,
            risk_source=risk_source,
            projection_root=given.projection_root,
            field_aliases=dict(given.field_aliases),
            field_descriptions=given.field_descriptions,
            timeout=given.timeout,
        )

    async def call(self, call: ToolCall) -> CallResult | None:
        """Run the function of a tool; `None` if the tool is not a function of this board."""
        definition = call.tool.definition
        return await definition.function.run(call) if isinstance(definition, _Definition) else None


# Compared by identity: comparing the schemas would generate them.
@dataclass(frozen=True, eq=False, slots=True)
class _Definition:
    """Returns the schemas of a function. It is also how a tool leads back to its function."""

    function: _Function
    cache: SchemaCache
    key: str

    def __call__(self) -> Schemas:
        return self.cache.get(self.key, lambda: self.function.schemas)


@dataclass(eq=False)
class _Function:
    fn: Function
    name: str
    description: str
    parameters: Mapping[str, str]

    @cached_property
    def sdk_tool(self) -> SdkTool:
        from mcp.server.mcpserver.tools.base import Tool as SdkTool
        from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata

        class Unconverted(FuncMetadata):
            # The SDK turns `body='{"a": 1}'` into an object even if the parameter takes text.
            # Arguments have already been coerced by their schema when they come here.
            def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
                return data

        try:
            tool = SdkTool.from_function(self.fn, name=self.name, description=self.description)
            parts = {name: getattr(tool.fn_metadata, name) for name in FuncMetadata.model_fields}
            return tool.model_copy(update={"fn_metadata": Unconverted(**parts)})
        except Exception as exc:  # pydantic and the SDK raise many types for a bad signature
            raise ConfigError(
                f"No schema can be generated from the type hints of {self.name!r}: {exc}",
                tool=self.name,
            ) from exc

    @property
    def schemas(self) -> Schemas:
        # A board that lists only names never needs the schema modules.
        from pegboard.core.schemas import strip_generated_titles

        generated = None if is_sdk_imported() else build_plain_schemas(self.fn)
        if generated is None:
            generated = Schemas(self.sdk_tool.parameters, self.sdk_tool.output_schema)
        schema = require_object_schema(strip_generated_titles(generated.input))
        properties: JsonObject = {}
        for name, prop in schema.get("properties", {}).items():
            if name in self.parameters and "description" not in prop:
                prop = {**prop, "description": self.parameters[name]}
            properties[name] = prop
        output = None if generated.output is None else strip_generated_titles(generated.output)
        return Schemas({**schema, "properties": properties}, output)

    async def run(self, call: ToolCall) -> CallResult:
        from mcp.server.mcpserver.exceptions import ToolError as SdkToolError
        from mcp_types import InputResponseRequestParams

        inputs = {k: call.params[k] for k in ("inputResponses", "requestState") if k in call.params}
        context = _context_class()(
            request_context=call.request,  # pyright: ignore[reportArgumentType] opaque outside `server`
            input_params=InputResponseRequestParams.model_validate(inputs) if inputs else None,
        )
        try:
            result = await self.sdk_tool.run(call.arguments, context, convert_result=True)
        except SdkToolError as exc:
            cause = exc.__cause__
            if isinstance(cause, PegboardError):
                raise cause from exc
            if type(cause).__name__ == "ValidationError":
                raise InvalidArguments(str(exc), tool=self.name) from exc
            kind = type(cause).__name__
            if cause is None or isinstance(cause, ValueError) or kind == "ToolError":
                raise ToolError(str(cause or exc), tool=self.name) from exc
            # The text of a crash can contain credentials or private data: only the log gets it.
            import logging  # imported late, as nearly everything in this module

            logging.getLogger(__name__).error("tool %s failed", self.name, exc_info=cause)
            message = f"{self.name} crashed ({kind}); see the server's log."
            raise UpstreamError(message, tool=self.name) from exc
        # A key that is absent and one that is null mean different things to some clients.
        return CallResult(result.model_dump(by_alias=True, mode="json", exclude_none=True))


@cache
def _context_class() -> type[Context[Any, Any]]:
    """The SDK's context for functions; reporting progress also extends the timeout."""
    from mcp.server.mcpserver.context import Context

    from pegboard.ports import progress_callback

    class TimedContext(Context[Any, Any]):
        async def report_progress(
            self, progress: float, total: float | None = None, message: str | None = None
        ) -> None:
            progress_callback()()
            await super().report_progress(progress, total, message)

    return TimedContext


@dataclass(frozen=True, slots=True)
class _Docstring:
    """A docstring without its sections, and the descriptions in its `Args:`."""

    text: str
    parameters: Mapping[str, str]

    @classmethod
    def parse(cls, fn: Function) -> _Docstring:
        doc = inspect.getdoc(fn)
        if not doc:
            return cls("", {})
        if ":" not in doc and "---" not in doc:  # no sections: no need to load the parser
            return cls(doc, {})
        from docstring_parser import parse

        parsed = parse(doc)
        parts = [parsed.short_description, parsed.long_description]
        text = "\n\n".join(part for part in parts if part)
        return cls(
            text, {p.arg_name: " ".join((p.description or "").split()) for p in parsed.params}
        )


# --- schemas without the SDK ----------------------------------------------------------------------

_SCALARS = (str, int, float, bool, bytes, NoneType)


class _NeedsSdk(Exception):
    """Only the SDK can generate these schemas."""


def is_sdk_imported() -> bool:
    """Whether something has imported the SDK, so that using it costs little more."""
    return "mcp" in sys.modules or "mcp_types" in sys.modules  # the latter has type hints too


def build_plain_schemas(fn: Callable[..., Any]) -> Schemas | None:
    """The schemas that the SDK would generate for a function; `None` if that needs the SDK."""
    try:
        signature = inspect.signature(fn, eval_str=True)
        output = _plain_output(signature.return_annotation, fn.__name__)
        return Schemas(_plain_input(signature, fn.__name__), output)
    except Exception:  # whatever is wrong with a signature, the SDK reports it better
        return None


def _plain_input(signature: inspect.Signature, name: str) -> JsonObject:
    from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model

    parameters: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        # The SDK renames parameters that pydantic would reject or take for its own.
        if parameter.name.startswith("_") or hasattr(BaseModel, parameter.name):
            raise _NeedsSdk
        hint: Any = parameter.annotation
        if hint is parameter.empty:
            hint = Annotated[Any, WithJsonSchema({"title": parameter.name, "type": "string"})]
        default = ... if parameter.default is parameter.empty else parameter.default
        parameters[parameter.name] = (Annotated[hint, Field()], default)
    config = ConfigDict(arbitrary_types_allowed=True)
    model = create_model(f"{name}Arguments", __config__=config, **parameters)
    schema = model.model_json_schema(by_alias=True)
    if "x-mcp-header" in str(schema):  # the SDK validates headers
        raise _NeedsSdk
    return schema


def _plain_output(hint: Any, name: str) -> JsonObject | None:
    """The output schema of a return type; `None` if it has none."""
    from pydantic import BaseModel, Field, TypeAdapter, create_model
    from pydantic.json_schema import GenerateJsonSchema

    class Strict(GenerateJsonSchema):
        """Raises for a type without a JSON form, instead of logging a warning."""

        def emit_warning(self, kind: Any, detail: str) -> None:
            raise ValueError(f"{kind}: {detail}")

    if hint is inspect.Signature.empty:
        return None
    is_model = inspect.isclass(hint) and issubclass(hint, BaseModel)
    is_container = isinstance(hint, GenericAlias | UnionType) or get_origin(hint) is Union
    if not (hint is None or is_model or is_container or hint in _SCALARS):
        raise _NeedsSdk
    model: Any
    if is_model:
        model = hint
    elif get_origin(hint) is dict and get_args(hint)[:1] == (str,):
        model = Annotated[hint, Field(title=f"{name}DictOutput")]
    else:
        wrapped: Any = hint
        model = create_model(f"{name}Output", result=wrapped)
    schema = TypeAdapter(model).json_schema(schema_generator=Strict)
    if "$ref" in schema:  # a recursive model, whose root the SDK resolves
        raise _NeedsSdk
    return schema
