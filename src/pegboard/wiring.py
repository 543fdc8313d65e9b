"""The composition root: alone in knowing everyone."""

from __future__ import annotations

from pegboard.core.options import Options
from pegboard.dispatch.permit import permit
from pegboard.dispatch.pipeline import compose
from pegboard.ports import Handler


def pipeline(options: Options, run: Handler) -> Handler:
    """A call's whole way: the layers, outermost first, around what runs it."""
    return compose([permit], run)
