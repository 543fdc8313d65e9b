"""The reference is what the code says now."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.reference_pages import pages

CURRENT = pages()


@pytest.mark.parametrize("page", CURRENT, ids=lambda p: p.stem)
def test_a_page_is_up_to_date(page: Path) -> None:
    text = page.read_text("utf-8") if page.exists() else ""
    assert text == CURRENT[page], "run `python scripts/reference_pages.py`"
