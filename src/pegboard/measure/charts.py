"""Which charts show a measurement."""

from __future__ import annotations

from pegboard.core.options import FaceName
from pegboard.measure.measuring import Measurement
from pegboard.measure.svg import Bar, Chart

MOST_SERVERS = 12


def charts_of(measured: Measurement) -> list[Chart]:
    """The list, the session without and with a cache, and the servers."""
    use = measured.use
    about = f"{use.tools} tools used in {use.turns} turns; tokens of the base price"
    return [
        Chart(
            "What the list costs",
            f"Tokens ({measured.tokenizer}) before anything is asked",
            tuple(_bar(measured, face, cost.list) for face, cost in measured.faces.items()),
        ),
        Chart(
            "What a session costs without a prompt cache",
            about,
            tuple(_bar(measured, face, cost.plain) for face, cost in measured.sessions.items()),
        ),
        Chart(
            "What a session costs with a prompt cache",
            f"{about}; a changed list voids the cache",
            tuple(_bar(measured, face, cost.cached) for face, cost in measured.sessions.items()),
        ),
        Chart(
            "What the servers cost",
            f"Tokens of all their tools; the {MOST_SERVERS} dearest",
            tuple(
                Bar(server.name, server.tokens, f"{server.tools} tools")
                for server in measured.servers[:MOST_SERVERS]
            ),
        ),
    ]


def _bar(measured: Measurement, face: FaceName, value: float) -> Bar:
    return Bar(face, value, "", is_ours=face == "proxy")
