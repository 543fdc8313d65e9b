"""What models are sent, in tokens: told of every answer where somebody counts them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache

from pegboard.core.calls import CallResult
from pegboard.core.events import AnswerSent
from pegboard.core.json import JsonObject, compact
from pegboard.dispatch.observe import as_read
from pegboard.faces.face import View
from pegboard.ports import tell

LIST = "tools/list"
CALL = "tools/call"
_READ_BY_MODELS = ("name", "description", "inputSchema")


def tell_list_sent(view: View, face: str, entries: Sequence[JsonObject]) -> None:
    """Tell of a list, as far as clients put it before the model."""
    if view.count is not None:
        read = [{key: e[key] for key in _READ_BY_MODELS if key in e} for e in entries]
        _tell(view, face, LIST, _counted(compact(read), view.count))


def tell_result_sent(view: View, face: str, what: str, result: CallResult) -> None:
    """Tell of a result; `what` is the meta-tool that gave it, or `CALL` for a tool itself."""
    if view.count is not None:
        _tell(view, face, what, view.count(as_read(result)))


@lru_cache(maxsize=8)
def _counted(text: str, count: Callable[[str], int]) -> int:
    """Counted once: the same few lists are sent again and again."""
    return count(text)


def _tell(view: View, face: str, what: str, tokens: int) -> None:
    caller = view.caller
    event = AnswerSent(
        at=time.time(),
        face=face,
        what=what,
        tokens=tokens,
        principal=caller.principal,
        client=caller.client,
    )
    tell(view.observer, event)
