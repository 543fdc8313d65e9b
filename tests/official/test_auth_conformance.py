"""Some of the official client scenarios about logins; `auth_conformance` runs them all."""

from __future__ import annotations

import pytest
from tests.conftest import missing_part
from tests.official import auth_conformance
from tests.official.auth_conformance import NODE, PAGE, SUITE, Scenario, list_scenarios, play

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def suite() -> None:
    if not NODE.exists() or not SUITE.exists():
        missing_part("the official conformance suite is not installed (npm ci in tests/official)")


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("auth/scope-step-up", "2026-07-28"),
        ("auth/iss-wrong-issuer", "2026-07-28"),
        ("auth/2025-03-26-oauth-endpoint-fallback", "2025-03-26"),
    ],
)
def test_a_scenario_passes(name: str, version: str) -> None:
    statuses, printed = play(Scenario(name, version))
    assert statuses["SUCCESS"], printed[-3000:]
    assert not statuses["FAILURE"] + statuses["WARNING"], printed[-3000:]


def test_the_page_has_a_result_for_every_scenario_and_none_fails() -> None:
    _, _, table = PAGE.read_text("utf-8").partition(auth_conformance.TITLE)
    for one in list_scenarios():
        assert f"| `{one.name}` | {one.version} | " in table
    assert "| fails |" not in table
