"""Where programs run: the adapter of the `Sandbox` port."""

from __future__ import annotations

from importlib.util import find_spec

from pegboard.core.options import Options
from pegboard.errors import ConfigError


def require_sandbox() -> None:
    """Raise `ConfigError` if the interpreter for programs is not installed; imports nothing."""
    if find_spec("pydantic_monty") is None:
        raise ConfigError(
            "Programs need the sandbox of the extra `code`: pip install 'pegboard[code]'."
        )


def check_sandbox(options: Options) -> None:
    """The same, where the options offer to run programs; for the start of a server."""
    if options.mode == "code" or options.code.in_proxy:
        require_sandbox()
