"""What is predefined in a program: common modules, and idioms that the interpreter lacks.

Generator expressions are lists there, so `next(x for x in ...)` needs help, and its `gather` has no
`return_exceptions`. The stubs declare the same names for the checker, which never sees the prelude.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pegboard.core.code.stubs import MODULES

_IMPORTED = ", ".join(MODULES)
_HELPERS = """
def next(it, *default):
    for x in it:
        return x
    if default:
        return default[0]
    raise StopIteration()
async def _or_error(awaitable):
    try:
        return await awaitable
    except Exception as error:
        return error
async def gather(*awaitables, return_exceptions=False):
    if return_exceptions:
        awaitables = [_or_error(each) for each in awaitables]
    return await asyncio.gather(*awaitables)
class _Server:
    pass
"""
PRELUDE = f"import {_IMPORTED}{_HELPERS}"

_UNKNOWN_ERRORS = (
    *("FileNotFoundError", "ImportError", "ModuleNotFoundError", "PermissionError"),
    *("UnboundLocalError", "UnicodeDecodeError", "UnicodeEncodeError"),
)
"""Exceptions that the interpreter has and its checker does not know."""
STUB_PRELUDE = (
    "".join(f"import {name} as {name}\n" for name in MODULES)
    + "".join(f"class {name}(Exception): ...\n" for name in _UNKNOWN_ERRORS)
    + """\
from typing import Any
def next(it: Any, *default: Any) -> Any: ...
def map(function: Any, *iterables: Any) -> list[Any]: ...
def filter(function: Any, iterable: Any) -> list[Any]: ...
def format(value: Any, spec: str = ...) -> str: ...
def getattr(value: Any, name: str, *default: Any) -> Any: ...
def hasattr(value: Any, name: str) -> bool: ...
def keep(value: Any) -> str: ...
def kept(handle: str) -> Any: ...
async def gather(*awaitables: Any, return_exceptions: bool = ...) -> list[Any]: ...
"""
)
_FUTURE = re.compile(r"^from __future__ import [\w, ]+$", re.MULTILINE)
_GATHER = re.compile(r"\basyncio\.gather(?=\s*\()")


def bind_members(members: Mapping[str, Iterable[str]]) -> str:
    """Code that defines one object per server, whose attributes are tools: `github.create_issue`.

    The names on the right are looked up outside, where `member_alias` names the tool again.
    """
    lines: list[str] = []
    for owner, names in members.items():
        lines.append(f"{owner} = _Server()")
        lines += [f"{owner}.{name} = {member_alias(owner, name)}" for name in names]
    return "\n".join(lines)


def member_alias(owner: str, name: str) -> str:
    """The plain name under which a tool with a dotted name is looked up."""
    return f"_tool_{owner}__{name}"


def adapt(program: str) -> str:
    """The program as the interpreter takes it; every line stays where it is."""
    if "__future__" in program:  # the stubs come first, and it has to be at the top
        program = _FUTURE.sub("", program, count=1)
    if "return_exceptions" not in program:
        return program
    return _GATHER.sub(lambda match: "gather".rjust(len(match[0])), program)
