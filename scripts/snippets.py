"""Copies the files of `docs_src/` into the pages of the documentation, where there is a marker.

<!-- snippet: docs_src/quickstart.py -->
```python
(the file, without its docstring)
```
<!-- /snippet -->

`python scripts/snippets.py` rewrites the pages; with `--check` it only prints the outdated ones.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
_MARKED = re.compile(
    r"(?P<open><!-- snippet: (?P<path>\S+) -->\n).*?(?P<close><!-- /snippet -->)", re.DOTALL
)
_DOCSTRING = re.compile(r'\A""".*?"""\n+', re.DOTALL)


def pages() -> list[Path]:
    """Every page that may contain a snippet."""
    return [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]


def with_snippets(text: str) -> str:
    """The text of a page with the current content of every snippet."""
    return _MARKED.sub(_filled, text)


def _filled(found: re.Match[str]) -> str:
    path = ROOT / found["path"]
    code = _DOCSTRING.sub("", path.read_text("utf-8")).rstrip()
    language = {".py": "python", ".toml": "toml", ".json": "json"}[path.suffix]
    return f"{found['open']}```{language}\n{code}\n```\n{found['close']}"


def main() -> int:
    """Rewrite or check all pages."""
    stale = [p for p in pages() if with_snippets(p.read_text("utf-8")) != p.read_text("utf-8")]
    for page in stale:
        if "--check" not in sys.argv:
            page.write_text(with_snippets(page.read_text("utf-8")), "utf-8")
        print(page.relative_to(ROOT))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
