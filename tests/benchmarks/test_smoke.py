"""The benchmarks in small, as `make bench-smoke` runs them: ratios, never times."""

from __future__ import annotations

import pytest
from benchmarks.smoke import measure


@pytest.mark.slow
def test_the_most_important_ratios_are_kept() -> None:
    missed = [f"{r.what}: {r.value:.3f} > {r.at_most}" for r in measure() if not r.kept]
    assert not missed
