"""The figures of `scripts/structure.py`, on a package small enough to count by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.structure import (
    PAGE,
    PEGBOARD,
    format_figures,
    format_packages,
    function_length,
    measure_source,
    read_package,
    trace_board_call,
    trace_gateway_call,
)

FILES = {
    "__init__.py": "from tiny.shapes import area\n",
    "shapes.py": """\
# Lengths are in meters.
def area(width, height):
    return _checked(width) * _checked(height)  # not rounded


def _checked(length):
    return _not_negative(length)


def _not_negative(length):
    if length < 0:
        raise ValueError(length)
    return length
""",
    "print/shapes.py": """\
from ..shapes import area as computed


class Printer:
    def area(self):
        return computed(1, 2)


def area():
    return Printer().area()
""",
    "__main__.py": "import tiny.print.shapes\n",
}


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "tiny" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path / "tiny"


def test_the_figures_of_a_small_package(tiny: Path) -> None:
    assert measure_source(read_package(tiny)) == {
        "modules / thousand lines": "4 / 0.0",
        "private functions used once": "20.0%",  # `_not_negative`, of five functions
        "comments per 100 lines": "8.0",  # 2 in 25 lines
        "modules with a single importer": "1",  # `tiny.print.shapes`
        "modules under 50 lines": "3",
        "repeated basenames": "1",  # `shapes`
        "public names in two or more modules": "1",  # `area`; a method is not a public name
        "longest function": "4 lines: tiny.shapes._not_negative",
        "largest module": "13 lines: tiny.shapes",
    }


def test_no_module_has_more_than_600_lines_and_no_function_more_than_70() -> None:
    modules = read_package(PEGBOARD)
    assert [module.name for module in modules if module.lines > 600] == []
    functions = [(module.name, f) for module in modules for f in module.functions()]
    assert [(name, f.name) for name, f in functions if function_length(f) > 70] == []


def test_the_page_has_every_figure_and_every_package() -> None:
    page, modules = PAGE.read_text("utf-8"), read_package(PEGBOARD)
    first_cells = [
        line.split("|")[1].strip()
        for table in (format_figures({"": measure_source(modules)}), format_packages(modules))
        for line in table.splitlines()[2:]
    ]
    assert [cell for cell in first_cells if f"| {cell} |" not in page] == []


@pytest.mark.anyio
async def test_a_traced_call_touches_only_what_it_needs() -> None:
    board = {path for path, _ in (await trace_board_call()).functions()}
    gateway = {path for path, _ in (await trace_gateway_call()).functions()}
    assert "board.py" in board
    assert not any(path.startswith(("gateway/", "upstream/")) for path in board)
    assert any(path.startswith("gateway/") for path in gateway)
    assert any(path.startswith("upstream/") for path in gateway)
