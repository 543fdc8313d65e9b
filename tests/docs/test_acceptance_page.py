"""The acceptance page has the criteria and figures of now, and names tests that exist."""

from __future__ import annotations

import ast

import pytest
from scripts.acceptance_page import PAGE, ROOT, named_tests, page
from tests.acceptance.test_limits import DESIGNS

CRITERIA = [c for design in DESIGNS for c in design.criteria]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `python scripts/acceptance_page.py`"


def test_every_criterion_is_held_by_a_test_or_explained_by_a_decision() -> None:
    loose = [c.text for c in CRITERIA if not (c.tests or c.figure or c.decision)]
    assert loose == []
    assert all((ROOT / "docs" / c.decision).is_file() for c in CRITERIA if c.decision)


@pytest.mark.parametrize("name", named_tests())
def test_a_named_test_exists(name: str) -> None:
    file, _, test = name.partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text("utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = {node.name for node in tree.body if isinstance(node, functions)}
    assert not test or test.partition("[")[0] in found


def test_a_test_that_fails_is_shown_as_not_met() -> None:
    failing = "acceptance/test_hierarchical_dispatch.py::test_wrong_input_opens_no_breaker"
    named = next(c.tests[0] for c in CRITERIA if c.tests and not c.decision)
    assert "**not met**" not in page([failing])
    assert page([named]).count("**not met**") >= 1
