"""Generates `docs/reference/acceptance.md`: the criteria of the five designs and how they are met.

Criteria and measurements come from `tests/acceptance/criteria`. As a command, the script first runs
the tests that the criteria name, and marks those that fail. With `--check` it only checks that the
page is up to date.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Container, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.acceptance.criteria import Criterion, Design  # noqa: E402 the folder beside this one
from tests.acceptance.test_limits import DESIGNS  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "acceptance.md"
LIMITS = "acceptance/test_limits.py"
_WRITTEN = "<!-- Written by scripts/acceptance_page.py: change the criteria, then run it. -->\n"
_INTRODUCTION = """\
# Acceptance

Pegboard is based on five earlier designs. This page lists all their acceptance criteria, each with
the section of the design, the test that checks it and, if the design sets a number, our
measurement. Tokens are counted with `o200k_base`, on the example servers, through a client. For
durations the page shows the limit, and the tests measure them.

| command | |
|---|---|
| `pytest tests/acceptance` | runs the suite |
| `python scripts/acceptance_page.py` | runs the tests listed here and rewrites this page |

*Reported* means that a value is shown without a target. *Met differently* means that Pegboard
deliberately does it differently; the linked decision explains why.
"""


def page(failed: Container[str] = ()) -> str:
    """The current content of the page; `failed` are the tests that did not pass."""
    sections = ("\n".join(_section(design, failed)) for design in DESIGNS)
    return _WRITTEN + "\n".join([_INTRODUCTION, *sections])


def named_tests() -> list[str]:
    """Every test that a criterion names, as paths below `tests`."""
    return sorted({test for design in DESIGNS for c in design.criteria for test in tests_of(c)})


def tests_of(criterion: Criterion) -> tuple[str, ...]:
    """The tests of a criterion, with the one that checks its figure."""
    if criterion.figure is None:
        return criterion.tests
    name = criterion.figure.__name__
    figure = f"{LIMITS}::test_a_figure_is_within_what_the_design_asks_for[{name}]"
    return (*criterion.tests, figure)


def _section(design: Design, failed: Container[str]) -> Iterator[str]:
    yield f"## {design.title} ({design.number})\n"
    yield f"Migration guide: [{design.title}](../migration/{design.migration}.md).\n"
    yield "| section | criterion | test | figure | verdict |"
    yield "|---|---|---|---|---|"
    for criterion in design.criteria:
        tests = "<br>".join(f"`tests/{test}`" for test in criterion.tests or tests_of(criterion))
        figure = criterion.figure().text if criterion.figure else ""
        if criterion.limit:
            figure = f"limit: {criterion.limit}"
        cells = (criterion.section, criterion.text, tests, figure, _verdict(criterion, failed))
        yield "| " + " | ".join(cells) + " |"
    yield ""


def _verdict(criterion: Criterion, failed: Container[str]) -> str:
    if any(test in failed for test in tests_of(criterion)):
        return "**not met**"
    if criterion.figure is not None and criterion.figure().met is False:
        return "**not met**"
    if criterion.decision:
        return f"met differently: [decision](../{criterion.decision})"
    if criterion.figure is not None and criterion.figure().met is None:
        return "reported"
    return "met"


def _failures() -> set[str]:
    """The named tests that do not pass when they are run now."""
    run = [sys.executable, "-m", "pytest", "-q", "-rf", "--no-header"]
    run += [f"tests/{test}" for test in named_tests()]
    lines = subprocess.run(run, cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    broken = [line.split(" ")[1] for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return {t for t in named_tests() if any(b.startswith(f"tests/{t}") for b in broken)}


def main() -> int:
    """Rewrite or check the page."""
    check = "--check" in sys.argv
    # The SDK's client warns of every call of a tool that is not listed, such as `describe_tools`.
    logging.getLogger("client").setLevel(logging.ERROR)
    text = page() if check else page(_failures())
    if PAGE.exists() and PAGE.read_text("utf-8") == text:
        return 0
    print(PAGE.relative_to(ROOT))
    if not check:
        PAGE.write_text(text, "utf-8")
    return 1 if check else 0


if __name__ == "__main__":
    sys.exit(main())
