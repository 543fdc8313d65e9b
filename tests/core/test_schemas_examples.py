"""The readers on real tools: those of the example servers, and of catalogs given by a path.

`PEGBOARD_CATALOGS` names a folder; every file of JSON lines below it that has tools is read too.
"""

from __future__ import annotations

import json
import os
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from examples import memory
from examples.tracker import Tracker
from examples.tracker import board_for as tracker_board
from pegboard.core.schemas import (
    describe_parameters,
    format_field_outline,
    format_signature,
    list_output_fields,
    list_parameters,
    relax_output_schema,
    repair_schema,
)
from pegboard.tokens import count_tokens

TOKENS_OF_AN_ORDINARY_SIGNATURE = 40


@cache
def catalogs() -> dict[str, list[dict[str, Any]]]:
    """The tools of each catalog as they stand on the wire."""
    tracker, episodes = Tracker.open(":memory:"), memory.open_memory()
    with closing(tracker.connection), closing(episodes.connection):
        boards = {"tracker": tracker_board(tracker), "memory": memory.board_for(episodes)}
        found = {name: [tool.wire() for tool in board.tools()] for name, board in boards.items()}
    folder = os.environ.get("PEGBOARD_CATALOGS")
    for file in sorted(Path(folder).rglob("*.jsonl")) if folder else ():
        lines = map(json.loads, file.read_text(encoding="utf-8").splitlines())
        found[str(file)] = [line for line in lines if "inputSchema" in line]
    return {name: tools for name, tools in found.items() if tools}


def schemas() -> list[Any]:
    """Every schema of every catalog."""
    tools = [tool for tools in catalogs().values() for tool in tools]
    return [tool[key] for tool in tools for key in ("inputSchema", "outputSchema") if key in tool]


def test_signatures_are_short() -> None:
    for tools in catalogs().values():
        lines = [format_signature(tool["name"], tool["inputSchema"]) for tool in tools]
        assert sum(map(count_tokens, lines)) <= TOKENS_OF_AN_ORDINARY_SIGNATURE * len(lines)


def test_nearly_all_signatures_and_descriptions_leave_nothing_out() -> None:
    for tools in catalogs().values():
        lines = [format_signature(tool["name"], tool["inputSchema"]) for tool in tools]
        assert sum("…" in line for line in lines) <= 0.1 * len(lines)
        texts = [describe_parameters(tool["inputSchema"]) for tool in tools]
        assert sum(not text.complete for text in texts) <= 0.02 * len(texts)


def test_a_description_costs_less_than_the_schema_that_it_stands_for() -> None:
    for tools in catalogs().values():
        inputs = [tool["inputSchema"] for tool in tools]
        texts = sum(count_tokens(describe_parameters(schema).text) for schema in inputs)
        assert texts < 0.8 * sum(map(count_tokens, inputs))


def test_an_outline_of_a_result_costs_far_less_than_its_schema() -> None:
    for tools in catalogs().values():
        outputs = [tool["outputSchema"] for tool in tools if "outputSchema" in tool]
        outlines = sum(count_tokens(format_field_outline(schema)) for schema in outputs)
        assert outlines <= 0.4 * sum(map(count_tokens, outputs))


def test_every_parameter_of_a_signature_is_described_one_by_one() -> None:
    for schema in schemas():
        names = list_parameters(schema)
        assert set(names) <= {*schema.get("properties", {}), *schema.get("required", [])}
        assert all(one.keys() >= {"type", "description", "required"} for one in names.values())


def test_repairs_of_real_schemas_are_exact_and_the_result_compiles() -> None:
    for schema in schemas():
        made, exact = repair_schema(schema)
        try:
            jsonschema_rs.validator_for(schema, offline=True)
        except ValueError:
            continue  # as it came it was no schema
        assert exact
        jsonschema_rs.validator_for(made, offline=True)
        jsonschema_rs.validator_for(relax_output_schema(schema), offline=True)


@pytest.mark.parametrize("name", ["tracker", "memory"])
def test_every_output_field_of_an_example_server_is_in_its_outline(name: str) -> None:
    for tool in catalogs()[name]:
        outline = format_field_outline(tool.get("outputSchema", {}))
        for path in list_output_fields(tool.get("outputSchema", {})):
            assert path.rsplit(".", 1)[-1].removesuffix("[]") in outline
