"""All modes by name."""

from __future__ import annotations

from pegboard.core.options import ModeName
from pegboard.modes.dynamic import DynamicMode
from pegboard.modes.eager_and_stub import EagerMode, StubMode
from pegboard.modes.hierarchy import HierarchyMode
from pegboard.modes.index import IndexMode
from pegboard.modes.mode import Mode
from pegboard.modes.proxy import ProxyMode

MODES_BY_NAME: dict[ModeName, Mode] = {
    "eager": EagerMode(),
    "stub": StubMode(),
    "index": IndexMode(),
    "hierarchy": HierarchyMode(),
    "proxy": ProxyMode(),
    "dynamic": DynamicMode(),
}
