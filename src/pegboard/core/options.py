"""How a board is shown and called: one frozen record, read once, passed down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pegboard.core.tools import Risk

FaceName: TypeAlias = Literal["eager", "stub", "index", "hierarchy", "proxy", "dynamic"]
FACES: tuple[FaceName, ...] = ("eager", "stub", "index", "hierarchy", "proxy", "dynamic")


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """What the author or operator decided; every field has a default that suits most."""

    face: str = "auto"
    pins: tuple[str, ...] = ()
    risk: Literal["auto", "split", "single"] = "auto"
    risk_rules: Mapping[str, Risk] = field(default_factory=dict[str, Risk])
    """Globs over tool ids and names, for tools whose annotations say nothing."""
    structured: bool = False
    """Whether meta-tools answer with `structuredContent` beside their text, asked for or not."""
    eager_budget: int = 4_000
    """`auto` lists a catalogue of at most so many tokens whole: 2 % of a window of 200,000."""
    client_faces: Mapping[str, str] = field(default_factory=dict[str, str])
    """`auto` in the session era: face by client name, before the table of known clients."""
    page_tokens: int = 1_500
    """How much one listing of the `index` face may cost before it pages."""
    page_size: int | None = None
    """Tools per page of `tools/list`; `None` lists all on one page, which every client can read."""
    list_ttl: float = 300.0
    """Seconds for which a modern client may keep `tools/list`."""
    session_cap: int = 40
    """Enabled tools of one `dynamic` session, beyond its pins."""
    dispatch_risk: Literal["allow", "refuse", "read-only"] = "allow"
    """What `tools_dispatch` may call: all, all but destructive, or only annotated read-only tools."""
    max_parallel: int = 8
    """Calls of one fan-out that run at the same time."""
