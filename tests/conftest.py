"""What all tests share: the async backend, real parts, and a word about what was skipped."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from typing import NoReturn

import pytest
from hypothesis import settings

# A check that decides whether a change lands must say the same each time; people's runs explore.
settings.register_profile("explore", deadline=None, max_examples=60)
settings.register_profile("ci", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "explore")

# pytest-xdist sets the width of its own terminal; commands under test print as without a terminal.
os.environ.pop("COLUMNS", None)

# Tests keep nothing in the user's own folders.
os.environ.setdefault("PEGBOARD_HOME", tempfile.mkdtemp(prefix="pegboard-tests-"))

REQUIRE_REAL_PARTS = os.environ.get("PEGBOARD_REQUIRE_REAL_PARTS") == "1"

_skipped: Counter[str] = Counter()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def missing_part(reason: str) -> NoReturn:
    """Skip a test whose real part is not on this machine; where all are required, fail it."""
    if REQUIRE_REAL_PARTS:
        pytest.fail(f"a required part is missing: {reason}")
    pytest.skip(reason)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and isinstance(report.longrepr, tuple):
        _skipped[report.longrepr[2].removeprefix("Skipped: ")] += 1


def pytest_unconfigure(config: pytest.Config) -> None:
    if config.getoption("collectonly"):
        return
    if _skipped:
        reasons = "; ".join(f"{count} ({reason})" for reason, count in _skipped.items())
        print(f"Skipped: {reasons}")  # noqa: T201
    else:
        print("Skipped: nothing; every part was there.")  # noqa: T201
