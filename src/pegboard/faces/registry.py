"""All faces by name."""

from __future__ import annotations

from pegboard.core.options import FaceName
from pegboard.faces.dynamic import DynamicFace
from pegboard.faces.eager import EagerFace
from pegboard.faces.face import Face
from pegboard.faces.hierarchy import HierarchyFace
from pegboard.faces.index import IndexFace
from pegboard.faces.proxy import ProxyFace
from pegboard.faces.stub import StubFace

BY_NAME: dict[FaceName, Face] = {
    "eager": EagerFace(),
    "stub": StubFace(),
    "index": IndexFace(),
    "hierarchy": HierarchyFace(),
    "proxy": ProxyFace(),
    "dynamic": DynamicFace(),
}
