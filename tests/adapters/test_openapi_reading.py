"""An OpenAPI document as tools: names, arguments, schemas, risk, and what is left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pegboard.adapters.openapi.document import (
    OpenApiSpec,
    SchemaConverter,
    convert_output_schema,
    parse_openapi,
    read_openapi_file,
)
from pegboard.adapters.openapi.operations import operation_to_tool, parse_operations
from pegboard.core.tools import Tool
from pegboard.errors import ConfigError

LIBRARY = Path(__file__).parent / "library.yaml"
SPEC = OpenApiSpec(name="library", document=str(LIBRARY), query={"api_key": "k"})


def tools(spec: OpenApiSpec = SPEC) -> dict[str, Tool]:
    found, _ = parse_operations(read_openapi_file(LIBRARY), spec)
    return {operation.name: operation_to_tool(operation, spec) for operation in found}


def test_operations_become_tools_with_names_of_their_own() -> None:
    assert list(tools()) == [
        "listBooks",
        "addBook",
        "get_book",
        "replaceBook",
        "delete_books_id",
        "getCopy",
        "login",
        "addNote",
        "status",
        "slow",
        "cover",
        "archive",
        "listBooks_get",
    ]


def test_what_cannot_be_a_tool_is_left_out_and_said() -> None:
    _, problems = parse_operations(read_openapi_file(LIBRARY), SPEC)
    assert [str(p) for p in problems] == [
        "library: upload: POST /upload is skipped: its body is multipart/form-data.",
        "library: elsewhere: GET /elsewhere is skipped: https://example.org/schema.json is "
        "outside the document, and nothing else is fetched.",
        "library: dangling: GET /dangling is skipped: #/components/parameters/None does not exist.",
        "library: unnamed: GET /unnamed/{what} is skipped: no parameter describes what in its "
        "path.",
    ]


def test_a_tool_says_what_the_document_says() -> None:
    tool = tools()["listBooks"]
    assert (tool.id, tool.server, tool.category) == ("library.listBooks", "library", "library")
    assert tool.section == "books"
    assert (tool.title, tool.summary, tool.tags) == (
        "List books",
        "List books",
        ("books", "public"),
    )
    assert tool.description == "List books. Lists books, newest first. Filters are combined."
    assert tools()["slow"].description == "GET /slow"
    assert tools()["slow"].category == "library"
    assert tools()["delete_books_id"].deprecated


@pytest.mark.parametrize(
    ("name", "risk", "hints"),
    [
        ("listBooks", "read", {"readOnlyHint": True, "openWorldHint": True}),
        (
            "addBook",
            "write",
            {
                "readOnlyHint": False,
                "destructiveHint": False,
                "idempotentHint": False,
                "openWorldHint": True,
            },
        ),
        (
            "delete_books_id",
            "destructive",
            {
                "readOnlyHint": False,
                "destructiveHint": True,
                "idempotentHint": True,
                "openWorldHint": True,
            },
        ),
    ],
)
def test_risk_follows_the_method(name: str, risk: str, hints: dict[str, bool]) -> None:
    assert (tools()[name].risk, tools()[name].annotations) == (risk, hints)


def test_parameters_become_arguments_and_credentials_do_not() -> None:
    schema = tools()["listBooks"].input_schema
    assert list(schema["properties"]) == [
        "author",
        "tag",
        "ids",
        "filter",
        "top",
        "sort",
        "X-Trace",
        "shelf",
    ]
    assert schema["properties"]["top"] == {
        "type": "integer",
        "maximum": 100,
        "description": "How many",
    }
    assert schema["additionalProperties"] is False
    assert (
        "api_key"
        in tools(OpenApiSpec(name="l", document=""))["listBooks"].input_schema["properties"]
    )


def test_one_name_in_two_places_makes_two_arguments() -> None:
    schema = tools()["getCopy"].input_schema
    assert list(schema["properties"]) == ["id", "copy", "query_id"]
    assert schema["required"] == ["id", "copy"]
    assert schema["properties"]["id"]["description"] == "The book"


def test_a_plain_body_is_spread_without_what_is_read_only() -> None:
    schema = tools()["addBook"].input_schema
    assert list(schema["properties"]) == ["title", "secret", "sequel"]
    assert schema["required"] == ["title"]
    valid = jsonschema_rs.validator_for(schema).is_valid
    assert valid({"title": "A", "sequel": {"id": 1, "title": "B"}})
    assert not valid({"title": ""})
    assert not valid({"title": "A", "sequel": {"id": 1}})
    assert not valid({"title": "A", "other": 1})


def test_a_body_that_is_no_plain_object_stays_whole() -> None:
    schema = tools()["replaceBook"].input_schema
    assert list(schema["properties"]) == ["id", "body"]
    assert schema["required"] == ["id"]


def test_outputs_are_objects_and_promise_shapes_only() -> None:
    listed = tools()["listBooks"].output_schema
    assert listed is not None
    valid = jsonschema_rs.validator_for(listed).is_valid
    assert valid({"result": [{"id": 1}, {"title": "T", "more": True, "sequel": {"id": 2}}]})
    assert not valid({"result": [{"id": "one"}]})
    book = tools()["get_book"].output_schema
    assert book is not None
    assert book["type"] == "object"
    assert list(book["properties"]) == ["id", "title", "sequel"]
    assert tools()["delete_books_id"].output_schema is None
    assert tools()["getCopy"].output_schema is None


def test_include_exclude_and_category_are_the_configurations() -> None:
    spec = OpenApiSpec(
        name="l", document="", include=("*Book*",), exclude=("add*",), category="mine"
    )
    assert list(tools(spec)) == ["listBooks", "replaceBook", "listBooks_get"]
    assert tools(spec)["listBooks"].category == "mine"


def test_schemas_are_made_when_they_are_asked_for() -> None:
    tool = tools()["addBook"]
    assert tool.input_schema is tool.input_schema


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        (
            {"type": "string", "nullable": True, "enum": ["a"]},
            {"type": ["string", "null"], "enum": ["a", None]},
        ),
        (
            {"allOf": [{"type": "object"}], "nullable": True},
            {"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]},
        ),
        (
            {"type": "integer", "minimum": 0, "exclusiveMinimum": True},
            {"type": "integer", "exclusiveMinimum": 0},
        ),
        (
            {"type": "integer", "maximum": 9, "exclusiveMaximum": False},
            {"type": "integer", "maximum": 9},
        ),
        ({"type": "string", "example": "x", "xml": {}}, {"type": "string", "examples": ["x"]}),
        (
            {"type": "object", "properties": {"nullable": {"type": "boolean", "nullable": True}}},
            {"type": "object", "properties": {"nullable": {"type": ["boolean", "null"]}}},
        ),
    ],
)
def test_schemas_of_3_0_become_json_schema(old: Any, new: Any) -> None:
    document = parse_openapi('{"openapi": "3.0.3", "paths": {}}', "x")
    assert SchemaConverter(document, "input").convert(old) == new


def test_definitions_of_one_name_from_two_places_stay_apart() -> None:
    text = """{"openapi": "3.1.0", "paths": {}, "components": {
      "schemas": {"A": {"type": "string"}, "B": {"$ref": "#/components/x/A"}},
      "x": {"A": {"type": "integer"}}}}"""
    converter = SchemaConverter(parse_openapi(text, "x"), "input")
    converter.convert({"$ref": "#/components/schemas/A"})
    converter.convert({"$ref": "#/components/schemas/B"})
    assert converter.definitions == {
        "A": {"type": "string"},
        "B": {"$ref": "#/$defs/A_"},
        "A_": {"type": "integer"},
    }


def test_a_chain_of_a_thousand_references_is_followed() -> None:
    schemas = {f"S{i}": {"items": {"$ref": f"#/components/schemas/S{i + 1}"}} for i in range(1000)}
    value = {"openapi": "3.1.0", "paths": {}, "components": {"schemas": {**schemas, "S1000": {}}}}
    document = parse_openapi(json.dumps(value), "x")
    start = {"$ref": "#/components/schemas/S0"}
    document.check(start)
    converter = SchemaConverter(document, "input")
    converter.convert(start)
    assert len(converter.definitions) == 1001


def test_an_output_that_may_be_anything_is_not_promised() -> None:
    document = parse_openapi('{"openapi": "3.1.0", "paths": {}}', "x")
    assert (
        convert_output_schema(document, {"oneOf": [{"type": "object"}, {"type": "array"}]}) is None
    )
    assert convert_output_schema(document, None) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"swagger": "2.0"}', "this is Swagger 2"),
        ('{"openapi": "4.0.0"}', "not an OpenAPI 3 document: `openapi` is '4.0.0'"),
        ("just text", "not an OpenAPI 3 document"),
        ('{"openapi": "3.1.0", "paths": []}', "`paths` must be an object"),
        ('{"openapi":\n "3.1.0" 5}', "x:2: this is not valid JSON"),
        ("a: [1\nb: 2", "x:2: this is not valid YAML"),
    ],
)
def test_what_is_no_document_is_refused(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match="x") as caught:
        parse_openapi(text, "x")
    assert says in caught.value.message


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Cannot read"):
        read_openapi_file(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("origin", "url"),
    [("https://h/docs/openapi.json", "https://h/v1"), ("/etc/api.json", "/v1")],
)
def test_a_relative_address_is_taken_from_where_the_document_is(origin: str, url: str) -> None:
    text = '{"openapi": "3.1.0", "paths": {}, "servers": [{"url": "/v1"}]}'
    assert parse_openapi(text, origin).server_url() == url


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
        yield (*path, key)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, key))


WHOLE = read_openapi_file(LIBRARY).value
PLACES = [place for place in places(WHOLE) if place[0] in ("paths", "components", "servers")]
JUNK = [
    *(None, True, 5, "", "x", [], {}, [None], {"a": 1}, [{"$ref": "#/components"}]),
    *({"$ref": "#/paths"}, {"$ref": 5}, {"$ref": "#/components/schemas/Book"}),
]


@given(st.lists(st.tuples(st.sampled_from(PLACES), st.sampled_from(JUNK)), min_size=1, max_size=3))
@settings(max_examples=300)
def test_no_document_however_wrong_breaks_the_reading(changes: list[tuple[Any, Any]]) -> None:
    value = json.loads(json.dumps(WHOLE))
    for place, junk in changes:
        holder = value
        for key in place[:-1]:
            with suppress(KeyError, IndexError, TypeError):
                holder = holder[str(key) if isinstance(holder, dict) else key]
        with suppress(KeyError, IndexError, TypeError):
            holder[str(place[-1]) if isinstance(holder, dict) else place[-1]] = deepcopy(junk)
    assume(isinstance(value.get("paths"), dict))
    found, problems = parse_operations(parse_openapi(json.dumps(value), "x"), SPEC)
    for operation in found:
        tool = operation_to_tool(operation, SPEC)
        assert tool.input_schema["type"] == "object"
        assert tool.output_schema is None or tool.output_schema["type"] == "object"
    assert all(str(problem) for problem in problems)
