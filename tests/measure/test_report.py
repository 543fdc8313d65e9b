"""Reports: one file each, whole, safe, readable in light and dark."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from tests.boards import office_board

from pegboard import Pegboard
from pegboard.core.options import MODES
from pegboard.measure.measurement import Measurement, ServerCost, format_percent, measure
from pegboard.measure.report import Chart, CostBar, build_charts, render_report, render_svg
from pegboard.testing import make_tool

pytestmark = pytest.mark.anyio

HOSTILE = '<script>alert(1)</script>&"'


@pytest.fixture
async def measured() -> Measurement:
    return await measure(office_board())


async def test_the_picture_is_well_formed_and_has_a_bar_for_every_mode(
    measured: Measurement,
) -> None:
    root = ElementTree.fromstring(render_svg(build_charts(measured)))
    bars = [e for e in root.iter() if e.tag.endswith("rect")]
    assert len(bars) == 3 * len(MODES) + 1
    assert "prefers-color-scheme: dark" in render_svg(build_charts(measured))


async def test_the_page_needs_nothing_from_elsewhere(measured: Measurement) -> None:
    page = render_report(measured)
    assert "<script" not in page
    assert not re.search(r"""(src|href)\s*=|url\(|@import""", page)
    assert "prefers-color-scheme: dark" in page


async def test_the_page_is_whole(measured: Measurement) -> None:
    tags = _Tags()
    tags.feed(render_report(measured))
    assert tags.open == []
    assert tags.seen >= {"table", "svg", "h1", "h2"}


async def test_the_page_has_the_figures(measured: Measurement) -> None:
    page = render_report(measured)
    for mode, cost in measured.modes.items():
        assert mode in page
        assert f"{cost.list:,}" in page
    assert measured.expensive_tools[0].id in page


async def test_a_list_that_grows_is_not_called_a_saving() -> None:
    small = Pegboard("small")
    small.add(make_tool("ping"))
    page = render_report(await measure(small))
    assert "% more." in page
    assert "% less." not in page


async def test_names_of_servers_cannot_write_into_a_report(measured: Measurement) -> None:
    hostile = replace(measured, servers=(ServerCost(HOSTILE, 1, 1),), failures={HOSTILE: HOSTILE})
    assert "<script" not in render_report(hostile)
    assert "<script" not in render_svg(build_charts(hostile))


def test_a_chart_of_nothing_is_still_a_picture() -> None:
    empty = Chart("Nothing", "at all", (CostBar("none", 0),))
    assert ElementTree.fromstring(render_svg([empty])).attrib["viewBox"].startswith("0 0 720")


@pytest.mark.parametrize(
    ("part", "said"), [(0.5, "50.0%"), (0.99999, ">99.9%"), (1.0, "100.0%"), (-0.5, "-50.0%")]
)
def test_almost_all_is_not_called_all(part: float, said: str) -> None:
    assert format_percent(part) == said


class _Tags(HTMLParser):
    """Notes which elements are open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_servers_are_counted_the_same_wherever_they_are(measured: Measurement) -> None:
    servers = tuple(ServerCost(f"s{n}", 1, 10) for n in range(20))
    text = render_report(replace(measured, servers=servers, failures={"gone": "gone failed"}))
    assert re.findall(r"(\d+) servers? \((\d+) more could not be listed\)", text) == [
        ("20", "1"),
        ("20", "1"),
    ]
    assert re.findall(r"All \d+ servers", text) == []
