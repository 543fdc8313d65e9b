"""Mode and pins from the environment: `PEGBOARD_MODE` and `ALWAYS_AVAILABLE_TOOLS`.

The environment overrides requests, configuration and code, because it is the operator's emergency
switch: it takes effect without a change to any of them. Only a command-line flag overrides it, by
replacing it. Commands read it without serving, so nothing here imports the SDK.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pegboard.core.options import check_mode
from pegboard.errors import ConfigError, PegboardError

MODE_VARIABLE = "PEGBOARD_MODE"
PINS_VARIABLE = "ALWAYS_AVAILABLE_TOOLS"


def mode_from_environ(environ: Mapping[str, str]) -> str | None:
    """The mode that the environment sets; it wins over requests, configuration and code.

    Raises:
        ConfigError: There is no such mode.
    """
    mode = environ.get(MODE_VARIABLE, "").strip()
    try:
        return check_mode(mode) if mode else None
    except ConfigError as exc:
        raise ConfigError(f"{MODE_VARIABLE}: {exc.message}", **exc.details) from exc


def with_mode(environ: Mapping[str, str], mode: str | None) -> Mapping[str, str]:
    """The environment with the mode of a flag in place of its own.

    Raises:
        ConfigError: There is no such mode.
    """
    return environ if mode is None else {**environ, MODE_VARIABLE: check_mode(mode)}


def read_pins(environ: Mapping[str, str]) -> list[str]:
    """The pins that the environment names."""
    return [n for n in map(str.strip, environ.get(PINS_VARIABLE, "").split(",")) if n]


def merge_pins(environ: Mapping[str, str], pins: Sequence[str]) -> tuple[str, ...]:
    """The configured pins and those that the environment names."""
    return tuple(dict.fromkeys([*pins, *read_pins(environ)]))


def check_pins(environ: Mapping[str, str], find: Callable[[str], object]) -> None:
    """Check that every pin of the environment names a tool that `find` knows.

    Raises:
        ConfigError: One is the name of no tool, or of several.
    """
    for name in read_pins(environ):
        try:
            find(name)
        except PegboardError as exc:
            message = f"A pin in {PINS_VARIABLE} names no tool: {exc.message}"
            raise ConfigError(message, **exc.details) from exc
