"""Which client meets which mode: every pair that the suite plays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pytest
from tests.conformance.clients import Era
from tests.conformance.scenarios import shown_mode

from pegboard.core.options import MODES, ModeName


@dataclass(frozen=True)
class Case:
    """One client, over one transport, in one era, at one mode."""

    client: str
    era: Era
    mode: ModeName

    @property
    def shown(self) -> ModeName:
        return shown_mode(self.mode, self.era)

    def __str__(self) -> str:
        return f"{self.client}-{self.era}-{self.mode}"


_EVERYWHERE: tuple[tuple[str, Era], ...] = (
    ("python-memory", "legacy"),
    ("python-memory", "modern"),
    ("python-http", "legacy"),
    ("python-http", "modern"),
    ("typescript1-http", "legacy"),
    ("typescript2-http", "legacy"),
    ("typescript2-http", "modern"),
)
# A process of Python takes seconds to start on a small machine, so stdio is tried at one mode each.
_ON_STDIO = (
    Case("python-stdio", "legacy", "dynamic"),
    Case("python-stdio", "modern", "proxy"),
    Case("typescript1-stdio", "legacy", "proxy"),
    Case("typescript2-stdio", "legacy", "hierarchy"),
    Case("typescript2-stdio", "modern", "index"),
)
# `code` has tests of its own (`tests/programs`), since it needs a sandbox.
_MODES: tuple[ModeName, ...] = tuple(mode for mode in MODES if mode != "code")
CASES = (*(Case(c, e, f) for c, e in _EVERYWHERE for f in _MODES), *_ON_STDIO)


def cases_of(*modes: ModeName, era: Era | None = None) -> list[Case]:
    """The cases whose client is really shown one of these modes."""
    return [c for c in CASES if c.shown in modes and era in (None, c.era)]


only = partial(pytest.mark.parametrize, "case", ids=str, indirect=True)
"""Marks a test that is about some of the cases: `@only(cases_of("proxy"))`."""
