"""The search of FastMCP as a ranker, to compare with ours over the same queries."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from pegboard.core.tools import Catalog
from pegboard.measure.search_quality import DEPTH, Ranker

FASTMCP_BM25 = "FastMCP BM25"
FASTMCP_REGEX = "FastMCP regex"


def fastmcp_rankers(catalog: Catalog) -> dict[str, Ranker]:
    """Both searches of the installed FastMCP; none if it is not installed.

    The regular expression is what a model would write for the query: any of its longer words.
    """
    try:
        from fastmcp.server.transforms.search import BM25SearchTransform, RegexSearchTransform
        from fastmcp.tools.base import Tool as FastTool
    except ImportError:
        return {}
    ids: dict[str, str] = {}
    tools: list[Any] = []
    for tool in catalog:
        name = f"{tool.server}_{tool.name}" if tool.server else tool.name
        if name not in ids:
            ids[name] = tool.id
            about: dict[str, Any] = {"description": tool.description}
            with _without_name_warnings():
                tools.append(FastTool(name=name, parameters=tool.input_schema, **about))

    def ranker(transform: Any, pattern: Callable[[str], str]) -> Ranker:
        def rank(query: str) -> Sequence[str]:
            found: Sequence[Any] = _run_now(transform._search(tools, pattern(query)))
            return [ids[tool.name] for tool in found]

        return rank

    return {
        FASTMCP_BM25: ranker(BM25SearchTransform(max_results=DEPTH), str),
        FASTMCP_REGEX: ranker(RegexSearchTransform(max_results=DEPTH), _any_long_word),
    }


@contextmanager
def _without_name_warnings() -> Generator[None]:
    """Silence the SDK's warnings about the names of tools."""
    logger = logging.getLogger("mcp.shared.tool_name_validation")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def _any_long_word(query: str) -> str:
    words = re.findall(r"\w+", query.lower())
    return "|".join(word for word in words if len(word) > 3) or re.escape(query)


def _run_now(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that never suspends, without the cost of an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("The ranker waits for something; it needs an event loop.")
