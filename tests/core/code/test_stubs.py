"""Stubs of tools: what the type checker of the sandbox makes of schemas, good and hostile."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.core.code.conftest import Check

from examples.tracker import build_board
from pegboard.core.code.stubs import (
    ToolTypes,
    build_stubs,
    parameter_name,
    program_name,
    unwrap_result_schema,
)

TEXT = {"type": "string"}
NODE = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "id": TEXT}}


def checkable(stubs: str) -> str:
    """Stubs as a program, so that the checker reports what it would pass over in stubs."""
    body = re.sub(r" = \.\.\.(?=[,)])", " = _default", stubs)
    body = re.sub(r"-> (.*): \.\.\.$", r"-> \1: raise ValueError()", body, flags=re.MULTILINE)
    return f"from typing import Any\n_default: Any = 1\n{body}"


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("create_issue", "create_issue"),
        ("github.create_issue", "github.create_issue"),
        ("github/create-issue", "github.create_issue"),
        ("list", "list_"),
        ("time.now", "time_.now"),
        ("a.b.c", "a.b_c"),
        ("2fa", "tool_2fa"),
        ("_private", "tool_private"),
        ("class", "class_"),
        ("gather", "gather_"),
        ("größe", "größe"),
        ("ﬁle", "file"),
        ("x\u00b2", "x2"),
        ("", "tool_"),
    ],
)
def test_the_name_of_a_tool_in_a_program_is_an_identifier_that_hides_nothing(
    address: str, name: str
) -> None:
    assert program_name(address) == name


@given(st.text(max_size=20))
def test_every_parameter_has_a_keyword(name: str) -> None:
    assert parameter_name(name).isidentifier()
    assert parameter_name(parameter_name(name)) in (parameter_name(name), f"{name}_", name + "__")


def test_parameters_and_results_have_types() -> None:
    parameters = {
        "properties": {"status": {"enum": ["open", "done"]}, "page-size": {"type": "integer"}},
        "required": ["status"],
    }
    result = {
        "properties": {"issues": {"type": "array", "items": {"properties": {"key": TEXT}}}},
        "required": ["issues"],
    }
    stubs = build_stubs([ToolTypes("list_issues", parameters, result)], is_async=True)
    assert "status: Literal['open', 'done'], page_size: int | None = ..." in stubs.text
    assert stubs.keys == {
        "_type_list_issues_issues": ("key",),
        "_type_list_issues": ("issues",),
    }
    assert "async def list_issues(" in stubs.text


def test_a_wrapper_around_a_list_is_removed_and_its_definitions_stay() -> None:
    schema = {
        "$defs": {"Issue": {"properties": {"key": TEXT}}},
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/Issue"}}},
    }
    unwrapped = unwrap_result_schema(schema)
    assert unwrapped is not None
    assert unwrapped["type"] == "array"
    stubs = build_stubs([ToolTypes("find", {}, schema)], is_async=True)
    assert "-> list[_type_find]" in stubs.text
    assert unwrap_result_schema({"properties": {"result": TEXT, "more": TEXT}}) is not None


def test_every_tool_of_the_tracker_has_stubs_that_the_checker_accepts(check: Check) -> None:
    tools = [
        ToolTypes(program_name(tool.name), tool.input_schema, tool.output_schema)
        for tool in build_board().tools()
    ]
    assert len(tools) > 100
    for is_async in (True, False):
        assert check(checkable(build_stubs(tools, is_async=is_async).text), None) == ""


@pytest.mark.parametrize(
    "parameters",
    [
        {"properties": {"self": TEXT, "_server": TEXT, "_others": TEXT, "__debug__": TEXT}},
        {"properties": {"a-b": TEXT, "a_b": {"type": "integer"}, "include_fields": TEXT}},
        {"properties": {'x"] = 1\nimport os #': TEXT}, "additionalProperties": True},
        {"properties": {"a": {"enum": ["'", '"', "\n", "\\", None, True, 1, "\ud800"]}}},
        {"$defs": {"Node": NODE}, "properties": {"tree": {"$ref": "#/$defs/Node"}}},
        {"properties": {f"p{n}": {"properties": {"x": TEXT}} for n in range(1000)}},
        {"anyOf": [{"properties": {"a": TEXT}, "required": ["a"]}, {"properties": {"b": TEXT}}]},
        {"properties": {"a": {"enum": [1.5, {"x": 1}]}, "b": {"not": {}}, "c": False}},
    ],
)
def test_hostile_schemas_break_neither_their_own_stubs_nor_those_of_others(
    parameters: dict[str, Any], check: Check
) -> None:
    tools = [
        ToolTypes("bad", parameters, parameters),
        ToolTypes("server.bad", parameters, parameters),
        ToolTypes("good", {"properties": {"a": TEXT}}, {"properties": {"b": TEXT}}),
    ]
    stubs = build_stubs(tools, is_async=True)
    assert check(checkable(stubs.text), None) == ""
    assert 'Unknown key "c"' in check('(await good(a="x"))["c"]', stubs.text)


_leaves = st.sampled_from(
    [TEXT, {"type": "integer"}, {"type": ["number", "null"]}, {}, True, {"enum": ["a", 1, None]}]
)
_names = st.text(max_size=6)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("array"), "items": inner}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, max_size=3)}),
        st.fixed_dictionaries(
            {"properties": st.dictionaries(_names, inner, max_size=3)},
            optional={"additionalProperties": inner, "required": st.lists(_names, max_size=2)},
        ),
    )


schemas = st.recursive(_leaves, _nested, max_leaves=8).filter(lambda one: isinstance(one, dict))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parameters=schemas, result=schemas)
@example(parameters={"properties": {"": TEXT}}, result={"properties": {"": TEXT}})
def test_stubs_of_any_schema_are_valid(
    parameters: dict[str, Any], result: dict[str, Any], check: Check
) -> None:
    stubs = build_stubs([ToolTypes("a.tool", parameters, result)], is_async=True)
    assert check(checkable(stubs.text), None) == ""
