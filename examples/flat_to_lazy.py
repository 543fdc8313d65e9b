"""A flat FastMCP server made lazy in one line: `python -m examples.flat_to_lazy`.

Everything up to `attach` is a server as anybody writes one. After it, clients are shown a handful
of tools instead of all, and every tool stays callable by its own name.
"""

from __future__ import annotations

from fastmcp import FastMCP

from pegboard import attach

UNITS = ("metre", "foot", "mile", "kilogram", "pound", "litre", "gallon", "kelvin", "celsius")


def build_server() -> FastMCP:
    """A server with a tool for each pair of units."""
    server = FastMCP("converter")
    for one in UNITS:
        for other in UNITS:
            if one != other:
                server.tool(_converter(one, other), name=f"{one}_to_{other}")
    return server


def _converter(one: str, other: str):
    def convert(value: float, digits: int = 3) -> str:
        return f"{round(value, digits)} {one} in {other}"

    convert.__doc__ = f"Convert a quantity in {one} to {other}, rounded to so many digits."
    return convert


server = attach(build_server(), mode="proxy")

if __name__ == "__main__":
    server.run()
