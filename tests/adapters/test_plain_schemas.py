"""Functions with ordinary type hints have the same schemas with the SDK and without it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, Optional, TypedDict, Union

import pytest
from mcp.server.mcpserver.tools.base import Tool as SdkTool
from pydantic import BaseModel, Field

from examples import memory, tracker
from pegboard.adapters.functions import build_plain_schemas


class Colour(Enum):
    RED = "red"


class Point(BaseModel):
    """A point."""

    x: int = Field(ge=0, description="From the left.")
    y: int = 0


class Line(BaseModel):
    points: list[Point]
    colour: Colour | None = None


class Node(BaseModel):
    children: list[Node] = []


class Row(TypedDict):
    id: int


@dataclass
class Record:
    id: int


def no_hints(a, b=2):  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]
    """Without any hint."""


def scalars(a: str, b: int = 1, c: float = 0.5, d: bool = False, e: bytes = b"") -> str: ...
def optional(a: str | None = None, b: Optional[int] = None) -> int | None: ...  # noqa: UP045
def union(a: Union[int, str]) -> Union[int, str]: ...  # noqa: UP007
def literal(a: Literal["x", "y"] = "x", b: Colour = Colour.RED) -> bool: ...
def bounded(a: Annotated[int, Field(ge=1, le=5, description="How many")]) -> float: ...
def default_field(a: int = Field(default=3, description="Three")) -> None: ...
def containers(a: list[str], b: dict[str, int], c: tuple[int, ...] = ()) -> list[str]: ...
def abstract(a: Sequence[Point], b: Mapping[str, Any] | None = None) -> dict[str, Any]: ...
def int_keys(a: set[int]) -> dict[int, str]: ...
def model(a: Point) -> Line: ...
def models(a: Line) -> list[Line]: ...
def by_name(a: Line) -> dict[str, Point]: ...
def dates(a: date, b: datetime | None = None, c: Decimal = Decimal(1)) -> Decimal | None: ...
def starred(*a: int, **b: str) -> int: ...
async def later(a: int) -> str: ...


PLAIN = [
    no_hints, scalars, optional, union, literal, bounded, default_field, containers, abstract,
    int_keys, model, models, by_name, dates, starred, later,
]  # fmt: skip


def typed_dictionary(a: int) -> Row: ...
def data_class(a: int) -> Record: ...
def recursive(a: int) -> Node: ...
def annotated(a: int) -> Annotated[int, Field(ge=0)]: ...
def shadowing(schema: str, copy: int) -> str: ...
def private(_a: int) -> str: ...
def unknown_hint(a: "Nobody") -> str: ...  # noqa: F821, UP037  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]
def not_json(a: int) -> list[object]: ...


UNUSUAL = [typed_dictionary, data_class, recursive, annotated, shadowing, private, unknown_hint]


def functions_of_examples() -> list[Callable[..., Any]]:
    boards = (memory.build_board(seeded=False), tracker.build_board(seeded=False))
    tools: list[Any] = [tool for board in boards for tool in board.tools()]
    return [tool.definition.function.fn for tool in tools]


def same_as_sdk(fn: Callable[..., Any]) -> bool:
    made = build_plain_schemas(fn)
    if made is None:
        return False
    sdk = SdkTool.from_function(fn)
    assert json.dumps(made.input) == json.dumps(sdk.parameters), fn.__name__
    assert json.dumps(made.output) == json.dumps(sdk.output_schema), fn.__name__
    return True


@pytest.mark.parametrize("fn", PLAIN, ids=lambda fn: fn.__name__)
def test_an_ordinary_function_has_the_schemas_of_the_sdk(fn: Callable[..., Any]) -> None:
    assert same_as_sdk(fn)


@pytest.mark.parametrize("fn", UNUSUAL, ids=lambda fn: fn.__name__)
def test_an_unusual_one_is_left_to_the_sdk(fn: Callable[..., Any]) -> None:
    assert build_plain_schemas(fn) is None


def test_every_tool_of_the_example_servers_has_them_too() -> None:
    functions = functions_of_examples()
    assert len(functions) > 150
    assert all(same_as_sdk(fn) for fn in functions)


def test_a_type_that_has_no_json_form_is_as_it_is_with_the_sdk() -> None:
    made = build_plain_schemas(not_json)
    assert made is None or made.output == SdkTool.from_function(not_json).output_schema


def in_fresh_process(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


FRESH = """
import sys
from pegboard import Pegboard
{imports}
board = Pegboard("fresh")

@board.tool
def greet(name: str, times: int = 1) -> {returns}:
    "Say hello."

tool = board.describe("greet")[0]
has_output = tool.output_schema is not None
print("mcp" in sys.modules, has_output, tool.digest)
"""


def test_the_first_schema_of_a_process_does_not_import_the_sdk() -> None:
    alone = in_fresh_process(FRESH.format(imports="", returns="str"))
    beside = in_fresh_process(FRESH.format(imports="import mcp", returns="str"))
    assert alone.startswith("False True ")
    assert beside == alone.replace("False", "True", 1)  # the same digest too


def test_content_blocks_are_left_to_the_sdk() -> None:
    code = FRESH.format(imports="from mcp_types import TextContent", returns="list[TextContent]")
    assert in_fresh_process(code).startswith("True False ")
