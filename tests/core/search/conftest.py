from collections.abc import Callable
from typing import Any

import pytest

from pegboard.core.tools import Tool, constant_definition

MakeTool = Callable[..., Tool]


@pytest.fixture
def make_tool() -> MakeTool:
    """A tool of some name; `parameters` maps names to descriptions."""

    def make(name: str, *, parameters: dict[str, str] | None = None, **given: Any) -> Tool:
        properties = {
            key: {"type": "string", "description": text} for key, text in (parameters or {}).items()
        }
        return Tool(
            name, constant_definition({"type": "object", "properties": properties}), **given
        )

    return make
