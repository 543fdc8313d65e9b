"""Generated titles go, titles that somebody wrote stay."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from pegboard import Pegboard
from pegboard.core.schemas import strip_generated_titles


class Person(BaseModel):
    first_name: str
    title: str
    height: float = Field(title="Height in meters")


class Report(BaseModel):
    model_config = ConfigDict(title="The weekly report")

    people: list[Person]


def test_titles_that_repeat_a_name_are_left_out_at_every_depth() -> None:
    made = strip_generated_titles(Report.model_json_schema())
    person = made["$defs"]["Person"]
    assert "title" not in person
    assert person["properties"]["first_name"] == {"type": "string"}
    assert made["properties"]["people"] == {
        "items": {"$ref": "#/$defs/Person"},
        "type": "array",
    }


def test_a_property_named_title_and_titles_of_an_author_stay() -> None:
    made = strip_generated_titles(Report.model_json_schema())
    properties = made["$defs"]["Person"]["properties"]
    assert properties["title"] == {"type": "string"}
    assert properties["height"]["title"] == "Height in meters"
    assert made["title"] == "The weekly report"


def test_a_default_that_looks_like_a_schema_is_data() -> None:
    schema = {"properties": {"x": {"default": {"title": "X"}, "title": "X"}}, "title": "Model"}
    assert strip_generated_titles(schema) == {"properties": {"x": {"default": {"title": "X"}}}}


def test_neither_schema_of_a_function_repeats_names_as_titles() -> None:
    board = Pegboard("people")

    @board.tool()
    def find(person: Person) -> Person:
        """Find a person."""
        return person

    tool = board.describe("find")[0]
    assert "First Name" not in str(tool.input_schema)
    assert "Person'" not in str(tool.output_schema)
    assert tool.output_schema is not None
    assert tool.output_schema["properties"]["height"]["title"] == "Height in meters"
