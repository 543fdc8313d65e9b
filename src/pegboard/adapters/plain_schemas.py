"""Schemas of plain Python functions, generated with pydantic alone.

Importing the SDK takes 0.6 s of CPU, which is most of the first schema in a process that serves
nothing: a test, a script, a command. So while nobody has imported the SDK, functions with ordinary
type hints get their schemas here, and a test holds them equal to the SDK's, byte for byte. For
everything else (dataclasses, typed dictionaries, hints of the SDK itself, mistakes) the answer is
`None`, and the SDK is asked.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import GenericAlias, NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

from pegboard.core.json import JsonObject
from pegboard.core.tools import Schemas

if TYPE_CHECKING:
    pass

_WRAPPED = (str, int, float, bool, bytes, NoneType)


def sdk_is_imported() -> bool:
    """Whether somebody has imported the SDK, so that asking it costs little more."""
    return "mcp" in sys.modules or "mcp_types" in sys.modules  # the latter has hints of its own


def plain_schemas(fn: Callable[..., Any]) -> Schemas | None:
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
