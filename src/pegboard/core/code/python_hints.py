"""What to write instead of Python that programs do not have.

Models use the whole language out of habit. An error that says what to write instead costs them one
more try; one that does not costs them several searches.
"""

from __future__ import annotations

import re

PYTHON_ONLY = "Programs are Python: await tool(name=value); the last expression is the value."
MODULES_NOTE = (
    "Modules: asyncio, base64, bisect, collections, copy, csv, dataclasses, datetime, decimal, "
    "functools, hashlib, itertools, json, math, random, re, time, typing, unicodedata."
)
_THROUGH_TOOLS = "Programs reach nothing but tools: search for one that does this."
_BY_NAME = "Call a tool by its own name, as search shows it: await list_issues(status='open')."
_GATHER = "Use `await asyncio.gather(...)`; how many run at the same time is limited for you."
_PLAIN_DATA = "Use lists and dicts with sum, min, max and sorted."

_MODULES = {
    **dict.fromkeys(
        ("requests", "httpx", "aiohttp", "urllib", "http", "socket", "subprocess", "shutil"),
        _THROUGH_TOOLS,
    ),
    **dict.fromkeys(("numpy", "pandas"), _PLAIN_DATA),
    **dict.fromkeys(("logging", "traceback"), "Use print(...) and str(error)."),
    "statistics": "The mean is sum(x) / len(x), the median sorted(x)[len(x) // 2].",
    "operator": "Write a lambda: key=lambda row: row['votes'].",
    "heapq": "Use sorted(...)[:n].",
    "pprint": "Use print(json.dumps(value, indent=2)).",
    "uuid": "Use f'{random.getrandbits(128):032x}'.",
    "zoneinfo": "Use datetime.timezone(datetime.timedelta(hours=1)).",
    "enum": "Use plain strings.",
}
_NAMES = {
    **dict.fromkeys(("open", "exec", "eval", "compile", "__import__"), _THROUGH_TOOLS),
    **dict.fromkeys(
        ("call_tool", "call_tools", "tool", "tools", "mcp", "client", "session", "functions"),
        _BY_NAME,
    ),
    "input": "A program cannot ask anybody: end it with what you need to know.",
    "exit": "Use return.",
    "quit": "Use return.",
}
_MEMBERS = {
    **dict.fromkeys(
        ("create_task", "ensure_future", "TaskGroup", "wait", "as_completed", "Semaphore"), _GATHER
    ),
    **dict.fromkeys(("get_event_loop", "get_running_loop", "new_event_loop"), "Use `await`."),
    "wait_for": "Each call has a timeout of its own.",
    "utcnow": "Use datetime.now(timezone.utc).",
    "exit": "Use return.",
}
_SYNTAX = {
    "`async for`": "A tool returns its whole result: for row in await list_issues().",
    "asynchronous comprehension": "A tool returns its whole result: [r for r in await f()].",
    "async with": _GATHER,
    "class inheritance": "Write plain functions and dicts, and raise ValueError.",
    "yield": "Collect the values in a list and return it.",
    "del": "Use d.pop(key), or build a new list or dict.",
    "decorators": "Write plain methods and functions.",
    "exception groups": "Use `except`.",
}
_FAILURES = {
    "'utcnow'": _MEMBERS["utcnow"],
    "keyword argument 'default'": (
        "Convert such values first, dates with .isoformat(); what a program returns is written as "
        "JSON anyway."
    ),
    "There is no tool exit": "Use return.",
    "exceptions can only be called": "Give an exception one text: ValueError(f'...').",
    "'translate'": "Use replace or re.sub.",
    "'maketrans'": "Use replace or re.sub.",
    "os.environ": "Programs see no environment.",
}
_OTHER_LANGUAGES = re.compile(
    r"^[ \t]*(?:const|let|var|function|curl|echo|cat|ls|grep|npm|pip|git|select|#!/bin)\b"
    r"|=>\s*\{|console\.log|\|\s*jq\b",
    re.MULTILINE | re.IGNORECASE,
)


def explain_module(name: str) -> str:
    """The message for a module that cannot be imported."""
    return f"There is no module `{name}`. {_MODULES.get(name.partition('.')[0], MODULES_NOTE)}"


def explain_name(name: str) -> str:
    """The message for a name that is not defined."""
    return f"`{name}` is not defined{_after(_NAMES.get(name))}"


def explain_member(module: str, name: str) -> str:
    """The message for something that a module does not have."""
    return f"{module}.{name} is not supported{_after(_MEMBERS.get(name))}"


def explain_syntax(message: str, program: str) -> str:
    """The message for a program that does not parse, or uses what the sandbox does not have."""
    if is_other_language(program):
        return PYTHON_ONLY
    if "```" in program:
        return f"{message}. Send the program alone, without text around it."
    hint = next((text for word, text in _SYNTAX.items() if word in message), None)
    return f"{message}{_after(hint)}"


def explain_exception(error: str, message: str) -> str:
    """The message for an exception that a program did not catch."""
    hint = next((text for sign, text in _FAILURES.items() if sign in message), None)
    message = message.removeprefix("Internal error in monty: ")
    return f"{error}: {message}{_after(hint)}" if message else error


def is_other_language(program: str) -> bool:
    """Whether a program that does not parse looks like JavaScript, SQL or a shell script."""
    return _OTHER_LANGUAGES.search(program) is not None


def _after(hint: str | None) -> str:
    return f". {hint}" if hint else ""
