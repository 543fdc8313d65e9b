"""Every system is told what it lacks, and the page about systems says the same."""

from __future__ import annotations

import pytest
from tests.cli.terminal import ROOT

from pegboard.cli.platform_limits import find_platform_limits


def test_linux_with_bubblewrap_lacks_nothing() -> None:
    assert find_platform_limits("linux", lambda name: f"/usr/bin/{name}") == []
    (limit,) = find_platform_limits("linux", lambda name: None)
    assert "bubblewrap" in limit


@pytest.mark.parametrize("system", ["win32", "darwin", "freebsd14"])
def test_other_systems_are_told_that_they_are_not_tested(system: str) -> None:
    first, *others = find_platform_limits(system)
    assert "not tested" in first
    assert others


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_the_page_has_every_limit(system: str) -> None:
    page = " ".join((ROOT / "docs/reference/platforms.md").read_text("utf-8").split())
    for limit in find_platform_limits(system)[1:]:
        assert limit in page
