"""Python functions as tools: what their hints and docstrings say, and what a call does."""

from __future__ import annotations

import functools
import logging
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from mcp.server.mcpserver.context import Context
from mcp.server.mcpserver.exceptions import ToolError as SdkToolError
from pydantic import BaseModel, Field

from pegboard import ConfigError, InvalidArguments, Pegboard, Tool, ToolError, UpstreamError


class Address(BaseModel):
    street: str
    number: int = Field(gt=0)


@dataclass
class Parcel:
    weight: float
    to: str


@pytest.fixture
def board() -> Pegboard:
    return Pegboard("board")


def registered(board: Pegboard, fn: Any, **given: Any) -> Tool:
    board.tool(**given)(fn)
    return board.find(given.get("name") or fn.__name__)


async def called(board: Pegboard, fn: Any, **arguments: Any) -> Any:
    board.tool(name="tool")(fn)
    return (await board.call("tool", arguments)).output


# Schemas -----------------------------------------------------------------------------------------


def test_parameters_come_from_hints_and_docstring(board: Pegboard) -> None:
    def send(to: str, copies: int = 1, speed: Literal["slow", "fast"] = "slow") -> str:
        """Send a letter. It takes a while.

        Longer words about letters.

        Args:
            to: Who gets it,
                in any spelling.
            copies: How many.

        Returns:
            Where it is.
        """
        return to

    tool = registered(board, send)
    assert tool.name == "send"
    assert tool.summary == "Send a letter"
    assert tool.description == "Send a letter. It takes a while.\n\nLonger words about letters."
    assert tool.input_schema["required"] == ["to"]
    assert tool.input_schema["properties"] == {
        "to": {"type": "string", "description": "Who gets it, in any spelling."},
        "copies": {"type": "integer", "default": 1, "description": "How many."},
        "speed": {"type": "string", "enum": ["slow", "fast"], "default": "slow"},
    }
    assert "title" not in tool.input_schema


@pytest.mark.parametrize(
    "doc",
    [
        "Go.\n\n:param far: How far.",
        "Go.\n\nParameters\n----------\nfar : int\n    How far.",
        "Go.\n\nArgs:\n    far (int): How far.",
    ],
    ids=["sphinx", "numpy", "google"],
)
def test_every_usual_style_of_docstring_is_read(board: Pegboard, doc: str) -> None:
    def go(far: int) -> None: ...

    go.__doc__ = doc
    tool = registered(board, go)
    assert tool.description == "Go."
    assert tool.input_schema["properties"]["far"]["description"] == "How far."


def test_what_an_annotation_says_wins_over_the_docstring(board: Pegboard) -> None:
    def go(far: Annotated[int, Field(description="In miles.", ge=1)]) -> None:
        """Go.

        Args:
            far: In steps.
        """

    schema = registered(board, go).input_schema["properties"]["far"]
    assert (schema["description"], schema["minimum"]) == ("In miles.", 1)


def test_a_text_with_colons_is_not_taken_for_sections(board: Pegboard) -> None:
    def go() -> None:
        """Go: now or later.

        Example: go at noon.
        """

    assert "Example: go at noon." in registered(board, go).description


def test_a_function_without_words_is_named_by_its_name(board: Pegboard) -> None:
    def send_letter() -> None: ...

    tool = registered(board, send_letter)
    assert (tool.summary, tool.description) == ("send letter", "")


def test_models_and_dataclasses_are_parameters_and_results(board: Pegboard) -> None:
    def ship(parcel: Parcel, back_to: Address | None = None) -> Address:
        return back_to or Address(street=parcel.to, number=1)

    tool = registered(board, ship)
    text = str(tool.input_schema)
    assert "street" in text
    assert "weight" in text
    assert tool.output_schema is not None
    assert set(tool.output_schema["properties"]) == {"street", "number"}


def test_a_context_is_given_and_not_asked_for(board: Pegboard) -> None:
    def who(ctx: Context[Any, Any], loud: bool = False) -> str:
        return "you"

    assert list(registered(board, who).input_schema["properties"]) == ["loud"]


def test_a_schema_is_made_on_first_access_and_kept(board: Pegboard) -> None:
    def go(far: int) -> None: ...

    tool = registered(board, go)
    assert board.schema_cache.stats().misses == 0
    assert tool.input_schema is tool.input_schema
    assert (board.schema_cache.stats().misses, board.schema_cache.stats().hits) == (1, 1)


# Names -------------------------------------------------------------------------------------------


def test_a_lambda_needs_a_name(board: Pegboard) -> None:
    with pytest.raises(ConfigError, match="A lambda has no name"):
        board.tool(lambda: 1)
    assert registered(board, lambda: 1, name="one").name == "one"


def test_a_partial_needs_a_name(board: Pegboard) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    with pytest.raises(ConfigError, match="name"):
        board.tool(functools.partial(add, 1))


def test_the_decorator_leaves_the_function_as_it_is(board: Pegboard) -> None:
    @board.tool(category="numbers")
    def double(n: int) -> int:
        """Twice as much."""
        return 2 * n

    @board.tool
    def half(n: int) -> float:
        return n / 2

    assert (double(4), half(4)) == (8, 2.0)
    assert [t.id for t in board.tools()] == ["half", "numbers.double"]


def test_deprecation_may_say_nothing_but_that(board: Pegboard) -> None:
    def old() -> None: ...

    assert registered(board, old, deprecated=True).deprecated == "old is deprecated."
    assert registered(board, old, name="b", deprecated=False).deprecated is None


# Calls -------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_plain_and_async_functions_are_called_alike(board: Pegboard) -> None:
    def add(a: int, b: int = 2) -> int:
        return a + b

    async def later(a: int) -> str:
        return f"later {a}"

    assert await called(board, add, a=1) == {"result": 3}
    board.tool(later)
    result = await board.call("later", {"a": 1})
    assert result.content == [{"type": "text", "text": "later 1"}]


@pytest.mark.anyio
async def test_arguments_become_what_the_hints_say(board: Pegboard) -> None:
    def ship(parcel: Parcel, back_to: Address) -> str:
        assert isinstance(parcel, Parcel)
        return f"{parcel.weight} to {back_to.street}"

    parcel = {"weight": 2, "to": "Ada"}
    back = {"street": "Main", "number": 5}
    assert await called(board, ship, parcel=parcel, back_to=back) == {"result": "2.0 to Main"}


@pytest.mark.anyio
async def test_arguments_that_do_not_fit_the_hints_are_invalid(board: Pegboard) -> None:
    def move(to: Address) -> str:
        return to.street

    with pytest.raises(InvalidArguments) as caught:
        await called(board, move, to={"street": "Main", "number": 0})
    assert "number" in caught.value.message


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("trouble", "kind", "message"),
    [
        (ValueError("There is no such row."), ToolError, "There is no such row."),
        (ToolError("The printer is empty."), ToolError, "The printer is empty."),
        (SdkToolError("The SDK's way."), ToolError, "The SDK's way."),
        (InvalidArguments("Not that one."), InvalidArguments, "Not that one."),
        (UpstreamError("The line is dead."), UpstreamError, "The line is dead."),
    ],
)
async def test_an_anticipated_failure_keeps_its_words(
    board: Pegboard, trouble: Exception, kind: type[Exception], message: str
) -> None:
    def fail() -> None:
        raise trouble

    with pytest.raises(kind) as caught:
        await called(board, fail)
    assert str(caught.value) == message


@pytest.mark.anyio
async def test_a_crash_is_logged_and_keeps_its_secrets(
    board: Pegboard, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise KeyError("password")

    with caplog.at_level(logging.ERROR), pytest.raises(UpstreamError) as caught:
        await called(board, fail)
    assert "password" not in caught.value.message
    assert "tool crashed (KeyError)" in caught.value.message
    assert "password" in caplog.text


@pytest.mark.anyio
async def test_a_context_is_there_even_for_a_call_from_python(board: Pegboard) -> None:
    def who(ctx: Context[Any, Any]) -> str:
        return type(ctx).__name__

    assert (await called(board, who))["result"].endswith("Context")


@pytest.mark.anyio
async def test_a_result_of_several_parts_comes_as_it_is(board: Pegboard) -> None:
    from mcp_types import ImageContent, TextContent

    def picture() -> list[TextContent | ImageContent]:
        return [TextContent(text="a dot"), ImageContent(data="aGk=", mime_type="image/png")]

    board.tool(structured(picture))
    content = (await board.call("picture", {})).content
    assert [block["type"] for block in content] == ["text", "image"]
    assert content[1]["mimeType"] == "image/png"


def structured(fn: Any) -> Any:
    """The function without its return hint, which would ask for structured content."""
    del fn.__annotations__["return"]
    return fn


@pytest.mark.anyio
async def test_a_text_that_happens_to_be_json_stays_a_text() -> None:
    board = Pegboard()

    @board.tool
    def keep(body: str | None = None) -> str:
        return repr(body)

    assert (await board.call("keep", {"body": '{"a": 1}'})).output == {"result": "'{\"a\": 1}'"}
