"""The field reference of the example servers is what their schemas and results say now."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.field_pages import PAGES, pages

CURRENT = pages()


@pytest.mark.parametrize("page", CURRENT, ids=lambda p: p.stem)
def test_a_page_is_up_to_date(page: Path) -> None:
    text = page.read_text("utf-8") if page.exists() else ""
    assert text == CURRENT[page], "run `python scripts/field_pages.py`"


def test_there_is_no_page_of_a_server_that_is_gone() -> None:
    assert set(PAGES.glob("*.md")) == set(CURRENT)
