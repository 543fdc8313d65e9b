"""The criteria of the five designs that Pegboard grew out of, one module for each design.

A criterion says in our words what a line of the design asks for, with the section it stands in, and
names the tests that hold it. Where the design gives a number of tokens, `figure` measures ours.
`scripts/acceptance_page.py` writes `docs/reference/acceptance.md` from them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A measured value and whether it is within what the design asks for.

    `met` is `None` where nothing is compared: the page then reports the value without a verdict.
    """

    text: str
    met: bool | None


@dataclass(frozen=True)
class Criterion:
    """One line of a design.

    `decision` is the page, relative to `docs/`, that says why the line is not followed as it is
    written.
    """

    section: str
    text: str
    tests: tuple[str, ...] = ()
    figure: Callable[[], Figure] | None = None
    limit: str = ""
    decision: str = ""


@dataclass(frozen=True)
class Design:
    """A design with its criteria; `number` is its own."""

    number: str
    title: str
    migration: str
    criteria: tuple[Criterion, ...]
