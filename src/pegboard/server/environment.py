"""What the environment says of a server: `PEGBOARD_FACE` and `ALWAYS_AVAILABLE_TOOLS`.

The environment wins over what a request, a configuration or code says, because it is the way back
for operators: it takes effect without a change to any of them. Only a flag wins over it, by taking
its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from pegboard.core.options import checked_face
from pegboard.errors import ConfigError, PegboardError

FACE_VARIABLE = "PEGBOARD_FACE"
PINS_VARIABLE = "ALWAYS_AVAILABLE_TOOLS"


def forced_face(environ: Mapping[str, str]) -> str | None:
    """The face that the environment sets; it wins over requests, configuration and code.

    Raises:
        ConfigError: There is no such face.
    """
    face = environ.get(FACE_VARIABLE, "").strip()
    try:
        return checked_face(face) if face else None
    except ConfigError as exc:
        raise ConfigError(f"{FACE_VARIABLE}: {exc.message}", **exc.details) from exc


def with_face(environ: Mapping[str, str], face: str | None) -> Mapping[str, str]:
    """The environment with the face of a flag in it, which wins over its own.

    Raises:
        ConfigError: There is no such face.
    """
    return environ if face is None else {**environ, FACE_VARIABLE: checked_face(face)}


def pins_in(environ: Mapping[str, str]) -> list[str]:
    """The pins that the environment names."""
    return [n for n in map(str.strip, environ.get(PINS_VARIABLE, "").split(",")) if n]


def pins_from(environ: Mapping[str, str], pins: Sequence[str]) -> tuple[str, ...]:
    """The configured pins and those that the environment names."""
    return tuple(dict.fromkeys([*pins, *pins_in(environ)]))


def check_pins(environ: Mapping[str, str], find: Callable[[str], object]) -> None:
    """Accept the pins of the environment when `find` knows them all.

    Raises:
        ConfigError: One is the name of no tool, or of several.
    """
    for name in pins_in(environ):
        try:
            find(name)
        except PegboardError as exc:
            message = f"A pin in {PINS_VARIABLE} names no tool: {exc.message}"
            raise ConfigError(message, **exc.details) from exc
