"""Scopes by risk: which one a call needs, and which ones include it."""

from __future__ import annotations

import pytest

from pegboard.core.risk import RiskScopes
from pegboard.testing import make_tool

ALL = RiskScopes(read="r", write="w", destructive="d")
READ, WRITE, DESTRUCTIVE = (
    ("read", "annotated"),
    ("write", "annotated"),
    ("destructive", "annotated"),
)
UNKNOWN = ("write", "inferred")


@pytest.mark.parametrize(
    ("scopes", "risk", "granted", "missing"),
    [
        (ALL, READ, "", "r"),
        (ALL, READ, "r", None),
        (ALL, READ, "w", None),
        (ALL, READ, "d", None),
        (ALL, WRITE, "r", "w"),
        (ALL, WRITE, "d", None),
        (ALL, DESTRUCTIVE, "r w", "d"),
        (ALL, UNKNOWN, "r w", "d"),
        (RiskScopes(read="r"), DESTRUCTIVE, "", "r"),
        (RiskScopes(read="r"), DESTRUCTIVE, "r", None),
        (RiskScopes(destructive="d"), WRITE, "", None),
        (RiskScopes(destructive="d"), READ, "", None),
        (RiskScopes(), DESTRUCTIVE, "", None),
        (ALL, WRITE, "W w2", "w"),
    ],
)
def test_the_scope_that_is_missing(
    scopes: RiskScopes, risk: tuple[str, str], granted: str, missing: str | None
) -> None:
    tool = make_tool("touch", risk=risk[0], risk_source=risk[1])
    assert scopes.missing(tool, frozenset(granted.split())) == missing
