"""Layers put around a handler, outermost first."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.ports import Handler, Layer


def compose(layers: Sequence[Layer], handler: Handler) -> Handler:
    """The handler inside all layers; the first layer sees a call first and its result last."""
    for layer in reversed(layers):
        handler = layer(handler)
    return handler
