"""Pages and docstrings name files that exist, and the architecture page every package."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "pegboard"
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text("utf-8")
_FILE = re.compile(r"(?<![\w/.-])(?:[a-z_0-9]+/)*[a-z_0-9]+\.py\b")
_FOLDER = re.compile(r"(?<![\w/.-])(?:[a-z_0-9]+/)+(?![\w*<])")


def test_every_file_on_the_page_exists() -> None:
    files = set(_FILE.findall(PAGE))
    assert len(files) > 30
    assert [name for name in sorted(files) if not _exists(name)] == []


def test_every_folder_on_the_page_exists() -> None:
    folders = set(_FOLDER.findall(PAGE))
    assert len(folders) > 10
    assert [name for name in sorted(folders) if not _exists(name)] == []


def test_every_package_is_on_the_page() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert sorted(packages - {name.strip("/") for name in _FOLDER.findall(PAGE)}) == []


def test_files_that_other_pages_and_the_source_name_exist() -> None:
    texts = [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md", *SOURCE.rglob("*.py")]
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    named = {
        (path.name, name)
        for path in texts
        for name in _FILE.findall(path.read_text("utf-8").replace("src/pegboard/", ""))
        if name.partition("/")[0] in packages
    }
    assert len(named) > 50
    assert sorted((page, name) for page, name in named if not _exists(name)) == []


def test_packages_are_listed_in_the_order_of_their_imports() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    [layers] = [c["layers"] for c in contracts["contracts"] if c["type"] == "layers"]
    rank = {
        name.strip().removeprefix("pegboard."): number
        for number, layer in enumerate(layers)
        for name in layer.split("|")
    }
    table = PAGE.partition("## Packages")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `(\w+)(?:/|\.py)`", table, re.MULTILINE)
    assert [rank[name] for name in listed] == sorted(rank[name] for name in listed)


def _exists(name: str) -> bool:
    return (SOURCE / name).exists() or (ROOT / name).exists()
