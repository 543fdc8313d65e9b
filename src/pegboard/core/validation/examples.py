"""Examples must be valid calls."""

from __future__ import annotations

from pegboard.core.tools import Tool
from pegboard.core.validation.validators import Validator
from pegboard.errors import ConfigError, InvalidArguments


def check_examples(tool: Tool) -> None:
    """Accept the examples of a tool.

    Raises:
        ConfigError: One is not a valid call; says which and why.
    """
    if not tool.examples:
        return
    validator = Validator(tool.input_schema)
    for example in tool.examples:
        try:
            validator.check(dict(example.invocation), tool.name)
        except InvalidArguments as exc:
            raise ConfigError(
                f"The example {example.description!r} is not a valid call of {exc.message}",
                tool=tool.id,
            ) from exc
