"""The site holds together: every page is in its menu, every link leads somewhere, snippets hold."""

from __future__ import annotations

import re
import runpy
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.docs.snippet_claims import count_claims

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
BESIDE = [*ROOT.glob("*.md"), *ROOT.glob("examples/*.md"), *ROOT.glob("deploy/**/*.md")]
MIGRATIONS = sorted((ROOT / "docs_src").glob("migrate_*.py"))
TUTORIAL = ROOT / "docs_src" / "test_todo.py"
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def entries(nav: list[Any]) -> Iterator[str]:
    for item in nav:
        for target in item.values():
            yield from [target] if isinstance(target, str) else entries(target)


def anchors(page: Path) -> set[str]:
    """What can be pointed to in a page: its headings, as the site names them."""
    heads = re.findall(r"^#+ +(.+)$", page.read_text("utf-8"), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", head.lower()).strip() for head in heads]
    return {re.sub(r"[\s\-]+", "-", head) for head in plain}


def test_every_page_is_in_the_menu_once() -> None:
    nav = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]
    assert sorted(entries(nav)) == [p.relative_to(DOCS).as_posix() for p in PAGES]


@pytest.mark.parametrize("page", [*PAGES, *BESIDE], ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link in _LINK.findall(_CODE.sub("", page.read_text("utf-8"))):
        target, _, anchor = link.partition("#")
        if "://" in target or not target:
            continue
        found = (page.parent / target).resolve()
        assert found.exists(), link
        assert not anchor or anchor in anchors(found), link


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(DOCS).as_posix())
def test_a_page_has_one_title(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    assert len(re.findall(r"^# \S", text, re.MULTILINE)) == 1


@pytest.mark.parametrize("snippet", MIGRATIONS, ids=lambda p: p.stem)
def test_the_code_after_a_migration_does_what_it_says(snippet: Path) -> None:
    assert count_claims(snippet)["main"] > 0
    anyio.run(runpy.run_path(str(snippet))["main"])


@pytest.mark.parametrize("name", count_claims(TUTORIAL))
def test_the_tests_of_the_tutorial_pass(name: str) -> None:
    assert count_claims(TUTORIAL)[name] > 0
    runpy.run_path(str(TUTORIAL))[name]()


@pytest.mark.parametrize("name", ["quick-start", "install"])
def test_output_shown_in_a_guide_is_what_the_command_prints(name: str) -> None:
    printed = (DOCS / "reference" / "command-output.md").read_text("utf-8").splitlines()
    guide = (DOCS / "how-to" / f"{name}.md").read_text("utf-8")
    shown = [line for line in guide.splitlines() if re.match(r" +\S.* \d[\d,.]*%$", line)]
    assert shown
    assert [line for line in shown if line not in printed] == []
