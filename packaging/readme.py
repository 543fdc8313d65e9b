"""Writes the README for the package index, where links into the repository would lead nowhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

REPOSITORY = "pegboard/pegboard"


class ReadmeHook(MetadataHookInterface):
    """Sets `readme` to the README with links to the files of this version."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the field to the metadata of the project."""
        text = Path(self.root, "README.md").read_text("utf-8")
        text = absolute_links(text, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


def absolute_links(text: str, version: str) -> str:
    """The text with absolute URLs in place of relative links and images."""
    pages = f"https://github.com/{REPOSITORY}/blob/v{version}/"
    pictures = f"https://raw.githubusercontent.com/{REPOSITORY}/v{version}/"

    def replace(found: re.Match[str]) -> str:
        return f"{found[1]}({pictures if found[1].startswith('!') else pages}{found[2]})"

    return re.sub(r"(!?\[[^\]]*\])\((?!https?:|#)([^)]+)\)", replace, text)
