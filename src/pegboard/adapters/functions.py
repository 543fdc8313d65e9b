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
    pass
    from mcp.server.mcpserver.context import Context
    from mcp.server.mcpserver.tools.base import Tool as SdkTool


_WRAPPED = (str, int, float, bool, bytes, NoneType)


def sdk_is_imported() -> bool:
    """Whether somebody has imported the SDK, so that asking it costs little more."""
    return "mcp" in sys.modules or "mcp_types" in sys.modules  # the latter has hints of its own


def build_plain_schemas(fn: Callable[..., Any]) -> Schemas | None:
    """The schemas that the SDK would give a function; `None` where only the SDK can tell."""
    try:
        signature = inspect.signature(fn, eval_str=True)
        output = _output(signature.return_annotation, fn.__name__)
        return None if output is None else Schemas(_input(signature, fn.__name__), output.schema)
    except Exception:  # whatever is wrong with a signature, the SDK has the words for it
        return None


class _Output:
    def __init__(self, schema: JsonObject | None) -> None:
        self.schema = schema


def _input(signature: inspect.Signature, name: str) -> JsonObject:
    from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model

    parameters: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.name.startswith("_") or hasattr(BaseModel, parameter.name):
            raise ValueError(f"{parameter.name} needs what the SDK does about it")
        hint: Any = parameter.annotation
        if hint is parameter.empty:
            hint = Annotated[Any, WithJsonSchema({"title": parameter.name, "type": "string"})]
        default = ... if parameter.default is parameter.empty else parameter.default
        parameters[parameter.name] = (Annotated[hint, Field()], default)
    config = ConfigDict(arbitrary_types_allowed=True)
    model = create_model(f"{name}Arguments", __config__=config, **parameters)
    schema = model.model_json_schema(by_alias=True)
    if "x-mcp-header" in str(schema):
        raise ValueError("the SDK checks headers")
    return schema


def _output(hint: Any, name: str) -> _Output | None:
    """The output schema of a return type, which may be none; `None` where the SDK must tell."""
    from pydantic import BaseModel, Field, TypeAdapter, create_model

    if hint is inspect.Signature.empty:
        return _Output(None)
    if not _is_ordinary(hint):
        return None
    model: Any
    if inspect.isclass(hint) and issubclass(hint, BaseModel):
        model = hint
    elif get_origin(hint) is dict and get_args(hint)[:1] == (str,):
        model = Annotated[hint, Field(title=f"{name}DictOutput")]
    else:
        model = create_model(f"{name}Output", result=hint)
    schema = TypeAdapter(model).json_schema(schema_generator=_strict())
    return None if "$ref" in schema else _Output(schema)


def _is_ordinary(hint: Any) -> bool:
    """Whether a return type is a model, a scalar, or a container or union of any types at all."""
    from pydantic import BaseModel

    if hint is None or isinstance(hint, GenericAlias | UnionType) or get_origin(hint) is Union:
        return True
    return isinstance(hint, type) and (hint in _WRAPPED or issubclass(hint, BaseModel))


def _strict() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class Strict(GenerateJsonSchema):
        """Raises where a type has no JSON form, instead of warning."""

        def emit_warning(self, kind: Any, detail: str) -> None:
            raise ValueError(f"{kind}: {detail}")

    return Strict


Function: TypeAlias = Callable[..., Any]


class ToolKeywords(TypedDict, total=False):
    """The keywords of `@board.tool(...)`: what is left out comes from the function."""

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


class FunctionTools:
    """The functions registered on one board: makes a `Tool` of each and runs its calls."""

    def __init__(self, schemas: SchemaCache) -> None:
        self._schemas = schemas

    def make(self, fn: Function, given: Registration) -> Tool:
        """The `Tool` of a function; its schemas are generated when they are first asked for."""
        name = given.name or getattr(fn, "__name__", "")
        if not name or name == "<lambda>":
            raise ConfigError("A lambda has no name of its own: give one with name=...")
        doc = _Docstring.of(fn)
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
            examples=tuple(_example(e) for e in given.examples),
            related=tuple(given.related),
            aliases=tuple(given.aliases),
            tags=tuple(given.tags),
            enabled=given.enabled,
            deprecated=_deprecation(given.deprecated, name),
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
        """Run the function behind a call; `None` when there is none behind its tool."""
        definition = call.tool.definition
        return await definition.function.run(call) if isinstance(definition, _Definition) else None


@dataclass(frozen=True, eq=False, slots=True)
class _Definition:
    """Gives the schemas of a function; a tool carries its function here, and nowhere else."""

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

        try:
            tool = SdkTool.from_function(self.fn, name=self.name, description=self.description)
            return _taking_arguments_as_they_are(tool)
        except Exception as exc:  # pydantic and the SDK raise many kinds for a bad signature
            raise ConfigError(
                f"No schema can be made of the type hints of {self.name!r}: {exc}", tool=self.name
            ) from exc

    @property
    def schemas(self) -> Schemas:
        from pegboard.core.schemas import strip_generated_titles  # the reader of schemas loads late

        made = None if sdk_is_imported() else build_plain_schemas(self.fn)
        if made is None:
            made = Schemas(self.sdk_tool.parameters, self.sdk_tool.output_schema)
        schema = require_object_schema(strip_generated_titles(made.input))
        properties: JsonObject = {
            name: self._described(name, prop) for name, prop in schema.get("properties", {}).items()
        }
        output = None if made.output is None else strip_generated_titles(made.output)
        return Schemas({**schema, "properties": properties}, output)

    def _described(self, name: str, schema: JsonObject) -> JsonObject:
        if name in self.parameters and "description" not in schema:
            return {**schema, "description": self.parameters[name]}
        return schema

    async def run(self, call: ToolCall) -> CallResult:
        from mcp.server.mcpserver.exceptions import ToolError as SdkToolError
        from mcp_types import InputResponseRequestParams

        inputs = {k: call.params[k] for k in ("inputResponses", "requestState") if k in call.params}
        context = _context_class()(
            request_context=call.request,  # pyright: ignore[reportArgumentType] opaque outside the server room
            input_params=InputResponseRequestParams.model_validate(inputs) if inputs else None,
        )
        try:
            result = await self.sdk_tool.run(call.arguments, context, convert_result=True)
        except SdkToolError as exc:
            raise self._failure(exc) from exc
        return CallResult(result.model_dump(by_alias=True, mode="json", exclude_none=True))

    def _failure(self, exc: Exception) -> PegboardError:
        """What a model may read of a failure: the text of an anticipated one, never of a crash."""
        cause = exc.__cause__
        if isinstance(cause, PegboardError):
            return cause
        if type(cause).__name__ == "ValidationError":
            return InvalidArguments(str(exc), tool=self.name)
        if cause is None or isinstance(cause, ValueError) or type(cause).__name__ == "ToolError":
            return ToolError(str(cause or exc), tool=self.name)
        import logging  # here, as most that is imported for this module is imported late

        logging.getLogger(__name__).error("tool %s failed", self.name, exc_info=cause)
        return UpstreamError(
            f"{self.name} failed inside ({type(cause).__name__}); see the server's log.",
            tool=self.name,
        )


@cache
def _context_class() -> type[Context[Any, Any]]:
    """The SDK's context for functions, whose progress also gives the call more time."""
    from mcp.server.mcpserver.context import Context

    from pegboard.ports import progress_callback

    class TimedContext(Context[Any, Any]):
        async def report_progress(
            self, progress: float, total: float | None = None, message: str | None = None
        ) -> None:
            progress_callback()()
            await super().report_progress(progress, total, message)

    return TimedContext


def _taking_arguments_as_they_are(tool: SdkTool) -> SdkTool:
    """The tool without the SDK's guess that any text which is JSON was meant as an object.

    It turns `body='{"a": 1}'` into an object even where the parameter takes text. Arguments have
    been read by their schema before they come here.
    """
    from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata

    class AsTheyAre(FuncMetadata):
        def pre_parse_json(self, data: dict[str, Any]) -> dict[str, Any]:
            return data

    parts = {name: getattr(tool.fn_metadata, name) for name in FuncMetadata.model_fields}
    return tool.model_copy(update={"fn_metadata": AsTheyAre(**parts)})


@dataclass(frozen=True, slots=True)
class _Docstring:
    """A docstring without its sections, and what its `Args:` say."""

    text: str
    parameters: Mapping[str, str]

    @classmethod
    def of(cls, fn: Function) -> _Docstring:
        doc = inspect.getdoc(fn)
        if not doc:
            return cls("", {})
        if ":" not in doc and "---" not in doc:  # no sections: spare the parser
            return cls(doc, {})
        from docstring_parser import parse

        parsed = parse(doc)
        parts = [parsed.short_description, parsed.long_description]
        text = "\n\n".join(part for part in parts if part)
        return cls(
            text, {p.arg_name: " ".join((p.description or "").split()) for p in parsed.params}
        )


def _example(given: Example | Mapping[str, Json]) -> Example:
    if isinstance(given, Example):
        return given
    try:
        return Example(**given)
    except TypeError as exc:
        raise ConfigError(
            "An example has description, invocation and perhaps expected_output; "
            f"got {compact(dict(given))}."
        ) from exc


def _deprecation(given: str | bool | None, name: str) -> str | None:
    if given is True:
        return f"{name} is deprecated."
    return given or None
