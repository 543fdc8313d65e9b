"""Tools written down before there is a database to bind them to.

A category of an example server is a module of plain functions whose first parameter is what they
work on (a tracker, a memory). `Toolbox.tool` takes the same words as `Category.tool` of a board and
keeps the function as it is, so that tests and other functions call it directly; `hang` puts all of
them on a
board, each bound to one open database:

    issues = Toolbox[Tracker]("issues", "...")    # module level, nothing is opened

    @issues.tool(summary="Create an issue in a project", annotations=ADDS)
    def create_issue(t: Tracker, project: str, title: str) -> Issue: ...

    issues.hang(board, tracker, FIELDS)           # a client sees create_issue(project, title)

One call is one transaction: a tool that raises leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from types import MethodType
from typing import Any, Generic, NotRequired, Protocol, TypedDict, TypeVar

from typing_extensions import Unpack

from pegboard import Example, Pegboard

# An update counts as not destructive: the old values stay in the events of the tracker and in the
# history of an episode. What cannot be brought back is `REMOVES`.
READS: Mapping[str, bool] = {"readOnlyHint": True, "openWorldHint": False}
ADDS: Mapping[str, bool] = {
    "readOnlyHint": False,
    "destructiveHint": False,
    "idempotentHint": False,
    "openWorldHint": False,
}
SETS: Mapping[str, bool] = {**ADDS, "idempotentHint": True}
REMOVES: Mapping[str, bool] = {**SETS, "destructiveHint": True}


class Transactional(Protocol):
    """What tools work on: something whose changes are kept together or not at all."""

    def transaction(self) -> AbstractContextManager[object]: ...


class Metadata(TypedDict):
    """What a tool says of itself beside its signature and docstring."""

    summary: str
    annotations: Mapping[str, bool]
    examples: NotRequired[Sequence[Example]]
    related: NotRequired[Sequence[str]]
    aliases: NotRequired[Sequence[str]]
    tags: NotRequired[Sequence[str]]
    projection_root: NotRequired[str]
    field_aliases: NotRequired[Mapping[str, str]]
    deprecated: NotRequired[str]


R = TypeVar("R", bound=Transactional)
F = TypeVar("F", bound=Callable[..., object])


class Toolbox(Generic[R]):
    """The tools of one category, in the order in which they were written."""

    def __init__(self, name: str, description: str) -> None:
        self.name = name
        self.description = description
        self.kept: list[tuple[Callable[..., object], Metadata]] = []

    def tool(self, **metadata: Unpack[Metadata]) -> Callable[[F], F]:
        """Keep a function, whose first parameter is the resource, as a tool of this category."""

        def keep(function: F) -> F:
            self.kept.append((function, metadata))
            return function

        return keep

    def hang(self, board: Pegboard, resource: R, fields: Mapping[str, str]) -> None:
        """Register every tool on the board, bound to the resource; `fields` explains results."""
        category = board.category(self.name, description=self.description)
        for function, metadata in self.kept:
            tool = category.tool(**metadata, field_descriptions=fields)
            tool(_bound(function, resource))


def _bound(function: Callable[..., object], resource: Transactional) -> Callable[..., object]:
    method = MethodType(function, resource)

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> object:
        with resource.transaction():
            return method(*args, **kwargs)

    return call
