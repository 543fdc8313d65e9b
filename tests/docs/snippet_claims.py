"""Counts what a snippet of the documentation claims about its own behavior."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_CHECKS = {"raises", "check", "pegboard_budget"}
"""Calls that fail by themselves: of pytest, of a board, of the pytest plugin."""


def count_claims(snippet: Path) -> dict[str, int]:
    """The claims in each function that a test runs: `main`, or every `test_…`, by name."""
    tree = ast.parse(snippet.read_text("utf-8"))
    return {
        node.name: sum(1 for _ in _claims(node))
        for node in tree.body
        if isinstance(node, _FUNCTIONS) and (node.name == "main" or node.name.startswith("test_"))
    }


def _claims(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.AST]:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            yield node
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in _CHECKS:
                yield node
