"""Signatures in few tokens, for the lines of a search."""

from __future__ import annotations

import pytest

from pegboard.core.json import JsonObject
from pegboard.core.schemas import format_brief_signature

TEXT: JsonObject = {"type": "string"}


@pytest.mark.parametrize(
    ("properties", "required", "signature"),
    [
        ({"title": TEXT}, ["title"], "f(title)"),
        ({"limit": {"type": "integer", "minimum": 1, "default": 20}}, [], "f(limit?: int)"),
        (
            {"limit": {"type": "integer", "minimum": 1, "maximum": 9}},
            ["limit"],
            "f(limit: int 1..9)",
        ),
        ({"b": TEXT, "a": TEXT}, ["a"], "f(a, b?)"),
        ({"kind": {"enum": ["bug", "task"], "default": "task"}}, [], 'f(kind?: "bug"|"task")'),
        ({"x": {"anyOf": [TEXT, {"type": "null"}], "default": None}}, [], "f(x?)"),
        ({"x": {"anyOf": [TEXT, {"type": "null"}]}}, ["x"], "f(x: str|null)"),
        ({"day": {"type": "string", "format": "date"}}, [], "f(day?: str date)"),
        ({"ids": {"type": "array", "items": TEXT, "maxItems": 5}}, [], "f(ids?: str[])"),
    ],
)
def test_a_brief_signature_has_what_a_call_needs_and_no_defaults(
    properties: JsonObject, required: list[str], signature: str
) -> None:
    schema: JsonObject = {"type": "object", "properties": properties, "required": required}
    assert format_brief_signature("f", schema) == signature


def test_required_parameters_are_named_however_many_there_are() -> None:
    names = [f"parameter_number_{n}" for n in range(40)]
    schema: JsonObject = {
        "type": "object",
        "properties": dict.fromkeys([*names, "more"], TEXT),
        "required": names,
    }
    signature = format_brief_signature("f", schema)
    assert all(name in signature for name in names)
    assert signature.endswith("…1 more)")
