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


def check_sandbox(options: Options, mode: str | None = None) -> None:
    """The same if these options let models run programs; called when a server starts.

    Args:
        options: How the board is shown.
        mode: The mode that the environment or a flag sets instead.
    """
    modes = {mode or options.mode, *options.client_modes.values()}
    if "code" in modes or options.code.in_proxy:
        require_sandbox()
