"""Calls that were turned away before there was one, told to who keeps the record.

Whoever looks for a tool on somebody's behalf does so within `told_of`: a name that nobody has, one
that is hidden from this caller (which is the same to everything here), or the wrong way in.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

from pegboard.core.events import CallUnmade
from pegboard.core.json import Json, digest
from pegboard.errors import PegboardError
from pegboard.faces.face import View
from pegboard.ports import tell

LONGEST_NAME = 200


@contextmanager
def told_of(view: View, name: Json, arguments: Json, *, via: str | None = None) -> Generator[None]:
    """Tell of an error in the block as a call of this name that was not made."""
    try:
        yield
    except PegboardError as exc:
        caller = view.caller
        event = CallUnmade(
            at=time.time(),
            name=str(name)[:LONGEST_NAME],
            error=exc.kind,
            arguments=digest({} if arguments is None else arguments),
            principal=caller.principal,
            client=caller.client,
            session=caller.session,
            face=caller.face,
            via=via,
        )
        tell(view.observer, event)
        raise
