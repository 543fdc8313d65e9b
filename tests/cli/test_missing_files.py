"""A missing file is reported as missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.terminal import pegboard


@pytest.mark.parametrize("word", ["nope.json", "nope.toml", "./nope", "folder/nope"])
def test_measure_says_that_a_file_does_not_exist(word: str, tmp_path: Path) -> None:
    ran = pegboard("measure", word, home=tmp_path)
    assert ran.code == 3
    assert f"error: {word}: there is no such file." in ran.err
    assert "PATH" not in ran.err
