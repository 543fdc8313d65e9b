"""What checking arguments costs, as JSON: `python -m benchmarks.validation [CATALOG]`.

The argument has 2 KB of JSON; the schema is nested, with references, enums and limits. A catalog is a file of
JSON lines, one tool each: with it the cost of compiling and reading real schemas is measured too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.timing import microseconds
from pegboard.core.schemas import (
    describe_parameters,
    format_field_outline,
    format_signature,
    repair_schema,
)
from pegboard.core.validation import Validator, Validators, coerce_arguments
from pegboard.errors import InvalidArguments

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "project": {"type": "string", "minLength": 1},
        "notify": {"type": "boolean", "default": False},
        "issues": {"type": "array", "items": {"$ref": "#/$defs/Issue"}, "maxItems": 100},
    },
    "required": ["project", "issues"],
    "$defs": {
        "Issue": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "maxLength": 200},
                "priority": {"enum": ["low", "medium", "high", "urgent"]},
                "estimate": {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}]},
                "labels": {"type": "array", "items": {"type": "string"}},
                "assignee": {"$ref": "#/$defs/Person"},
            },
            "required": ["title"],
            "additionalProperties": False,
        },
        "Person": {
            "type": "object",
            "properties": {"id": {"type": "integer"}, "email": {"type": "string"}},
            "required": ["id"],
        },
    },
}


def arguments(size: int) -> dict[str, Any]:
    """Arguments that fit, of about that many bytes."""
    made: dict[str, Any] = {"project": "WEB", "notify": True, "issues": []}
    while len(json.dumps(made)) < size:
        number = len(made["issues"])
        made["issues"].append(
            {
                "title": f"Page {number} shows the wrong total after a refund",
                "priority": "high",
                "estimate": 1.5,
                "labels": ["billing", "regression"],
                "assignee": {"id": number, "email": f"person{number}@example.test"},
            }
        )
    return made


def refused(validator: Validator, given: dict[str, Any]) -> None:
    try:
        validator.check(given, "create_issues")
    except InvalidArguments:
        return
    raise AssertionError("these arguments do not fit")


def checking() -> dict[str, float]:
    """The cost of one call's arguments, that fit and that do not."""
    given, text, validators = arguments(2_000), json.dumps(arguments(2_000)), Validators()
    validator = validators.get("create_issues", SCHEMA)
    texts = {**given, "notify": "true"}
    wrong = {**given, "projet": "WEB"}
    return {
        "check_2kb": microseconds(lambda: validator.check(given, "create_issues")),
        "look_up_read_and_check_2kb": microseconds(
            lambda: validators.get("create_issues", SCHEMA).check(
                coerce_arguments("create_issues", given, validator), "create_issues"
            )
        ),
        "read_text_2kb": microseconds(lambda: coerce_arguments("create_issues", text, validator)),
        "mend_2kb": microseconds(lambda: coerce_arguments("create_issues", texts, validator), 300),
        "refuse_2kb": microseconds(lambda: refused(validator, wrong), 100),
        "compile": microseconds(lambda: Validator(SCHEMA), 300),
    }


def reading(catalog: Path) -> dict[str, float]:
    """The cost per schema of a catalog's input schemas, one pass over all of them."""
    lines = catalog.read_text(encoding="utf-8").splitlines()
    schemas = [json.loads(line)["inputSchema"] for line in lines]
    readers: dict[str, Callable[[Any], object]] = {
        "compile": Validator,
        "signature": lambda schema: format_signature("tool", schema),
        "describe": describe_parameters,
        "outline": format_field_outline,
        "repair": repair_schema,
    }
    return {
        name: round(microseconds(lambda r=read: [r(s) for s in schemas], 1) / len(schemas), 2)
        for name, read in readers.items()
    }


def main() -> None:
    figures: dict[str, Any] = {
        "argument_bytes": len(json.dumps(arguments(2_000))),
        "microseconds": checking(),
    }
    if len(sys.argv) > 1:
        figures["microseconds_per_schema"] = reading(Path(sys.argv[1]))
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
