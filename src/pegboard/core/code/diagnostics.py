"""What the type checker found in a program: what is certainly wrong, and what may be.

The checker is strict. It rejects text where a parameter lists its values, `None` as an alternative
to a value, and a key that the program itself added to a result. Such programs usually run, and a
model whose program is rejected without reason is stuck. So a finding is `certain` only when no run
could succeed:

    unknown names; unknown and missing parameters of tools      always
    a value that a parameter does not list, a wrong kind        when it is the value itself
    a key that a result does not have                           unless the program writes that key
    a call that is not awaited                                  always: it would never be made

The others are advice: they help to explain a run that failed at that line. A finding that rests on
the results of earlier calls alone is marked, because a later result may differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pegboard.core.code.python_hints import (
    explain_member,
    explain_module,
    explain_name,
    explain_syntax,
)
from pegboard.core.code.stubs import SERVER_PREFIX, TYPE_PREFIX, Stubs

MAX_KEYS_SHOWN = 20

_LINE = re.compile(r"[^:\n]*:(\d+):(\d+): (?:error|warning)\[([\w-]+)\] (.*)")
_QUOTED = re.compile(r"`([^`]*)`")
_KEY = re.compile(r'Unknown key "(.*?)" for TypedDict `(\w+)`')
_UNION = re.compile(r"\(subscripted object has type `(.*)`\)")
_ARGUMENT = re.compile(
    r"Argument to (?:function|bound method) `(.+?)` is incorrect: Expected `(.+)`, found `(.+)`"
)
_CALLED = re.compile(r"(?:function|bound method) `([\w.]+)`")
_LIST_KEY = re.compile(
    r'`__getitem__`.* key of type `Literal\[(".*?")\]` on object of type `list\['
)
_DICT_INDEX = re.compile(r"TypedDict `(\w+)` can only be subscripted .* `Literal\[-?\d+\]`")
_KEYWORD = re.compile(r"\w+\s*=\s*(\"[^\"]*\"|'[^']*'|[\w.\[\]'\"]+)?")
_NO_MEMBER = re.compile(r"Module `(\w+)` has no member `(\w+)`")
_TYPE_NAME = re.compile(rf"\b{TYPE_PREFIX}\w+")
# Not the type of a tool itself: a program may use its name for another value.
_UNAWAITED = re.compile(r"(?<!-> )CoroutineType\[")
_TEXT_LITERAL = re.compile(r'Literal\["(.*)"\]')
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_TRUTH = re.compile(r"true|false", re.IGNORECASE)
_ALWAYS = frozenset({"unresolved-reference", "unresolved-import"})
_OF_TOOLS = frozenset(
    {"unknown-argument", "missing-argument", "too-many-positional-arguments"}
    | {"parameter-already-assigned"}
)


@dataclass(frozen=True, slots=True)
class Mistake:
    """One finding: where, what, and whether a run could still succeed.

    `unknown` is a name that does not exist; `tool` is the tool whose call is wrong; `learned` means
    that only earlier results contradict it.
    """

    line: int
    message: str
    certain: bool
    unknown: str | None = None
    tool: str | None = None
    learned: bool = False


@dataclass(frozen=True, slots=True)
class _Finding:
    line: int
    column: int
    code: str
    text: str


def parse_diagnostics(text: str, code: str, stubs: Stubs) -> list[Mistake]:
    """The findings of the checker in its `concise` format, in the order of the program."""
    found = [
        _Finding(int(match[1]), int(match[2]), match[3], match[4])
        for match in map(_LINE.fullmatch, text.splitlines())
        # The value of a program may be given with `return`, which only functions have in Python.
        if match and "`return` statement outside" not in match[4]
    ]
    found.sort(key=lambda one: (one.line, one.column))
    # Other findings in text that is not Python mean nothing.
    if syntax := [one for one in found if one.code == "invalid-syntax"]:
        first = syntax[0]
        return [Mistake(first.line, explain_syntax(first.text, code), True)]
    # Positional arguments leave the parameters that they were meant for missing: one message.
    positional = {one.line for one in found if one.code == "too-many-positional-arguments"}
    found = [one for one in found if one.code != "missing-argument" or one.line not in positional]
    reader = _Reader(code, stubs)
    mistakes: list[Mistake] = []
    for _, group in groupby(found, key=lambda one: (one.line, one.column, one.code)):
        mistakes += reader.read(list(group))
    return list(dict.fromkeys(mistakes))


class _Reader:
    """Judges findings with the source and the stubs at hand."""

    def __init__(self, code: str, stubs: Stubs) -> None:
        self.lines = code.splitlines()
        self.code = code
        self.stubs = stubs

    def read(self, found: Sequence[_Finding]) -> Iterator[Mistake]:
        """The mistakes behind the findings of one kind at one place."""
        first = found[0]
        if any(_UNAWAITED.search(one.text) for one in found):
            yield Mistake(first.line, "`await` is missing in front of a call", True)
            return
        keys = [match for one in found if (match := _KEY.match(one.text))]
        if keys:
            name, label = keys[0][1], keys[0][2]
            # Of a union, it is certain only if every member lacks the key.
            lacking = {match[2] for match in keys}
            union = _UNION.search(first.text)
            others = set(_members(union[1])) - lacking - {"None"} if union else set[str]()
            is_open = not lacking.isdisjoint(self.stubs.open_types)
            certain = not others and not is_open and not self._writes_key(first, name)
            message = f'no key "{name}" (keys: {self._list_keys(label)})'
            yield Mistake(first.line, message, certain, learned=self._is_learned(*lacking))
            return
        for one in found:
            yield self._read_one(one)

    def _read_one(self, one: _Finding) -> Mistake:
        called = _CALLED.search(one.text)
        tool = called[1].removeprefix(SERVER_PREFIX) if called else None
        # Arguments of the program's own functions, and of Python's, are checked when they run.
        tool = tool if tool in self.stubs.names else None
        names = _QUOTED.findall(one.text)
        match one.code:
            case "unresolved-reference" if names:
                return Mistake(one.line, explain_name(names[0]), True, unknown=names[0])
            case "unresolved-import" if names:
                return Mistake(one.line, explain_module(names[0]), True)
            case "unresolved-attribute" if one.text.startswith("Object of type") and names:
                owner, name = names[0], names[-1]
                if owner.startswith(SERVER_PREFIX):
                    unknown = f"{owner.removeprefix(SERVER_PREFIX)}.{name}"
                    return Mistake(one.line, f"`{unknown}` is not defined", True, unknown=unknown)
                if name in self.stubs.keys.get(owner, ()):
                    message = f'results are dicts: write ["{name}"], not .{name}'
                    return Mistake(one.line, message, True)
                is_typed = owner in self.stubs.keys or owner.startswith("list[")
                message = f"{_plain(owner)} has no attribute `{name}`"
                learned = self._is_learned(*_TYPE_NAME.findall(owner))
                return Mistake(one.line, message, is_typed, learned=learned)
            case "unknown-argument" if names and tool:
                message = f"{tool} has no parameter `{names[0]}`"
                return Mistake(one.line, message, True, tool=tool)
            case "missing-argument" if names and tool:
                return Mistake(one.line, f"{tool} needs `{names[0]}`", True, tool=tool)
            case "too-many-positional-arguments" if tool:
                message = f"{tool} takes keyword arguments only"
                return Mistake(one.line, message, True, tool=tool)
            case "missing-typed-dict-key":
                return Mistake(one.line, _plain(one.text.partition(" in TypedDict")[0]), True)
            case _:
                return self._wrong_value(one, tool)

    def _wrong_value(self, one: _Finding, tool: str | None) -> Mistake:
        if match := _ARGUMENT.match(one.text):
            expected, given = map(_plain, match.group(2, 3))
            wanted = expected.removesuffix(" | None")  # signatures show that it can be left out
            # The argument as it stands in the program, cut before it gets long.
            source = self._rest(one)
            keyword = _KEYWORD.match(source)
            if keyword is not None and not keyword[1]:
                source = f"{keyword[0]}…"
            else:
                source = (keyword[0] if keyword else source)[:60]
            message = f"{source}: expected {wanted}, not {given}"
            # The checker tries the values of `**options` on every parameter.
            fits = any(
                _could_be(given, expected, self.stubs)
                for given in _members(match[3])
                for expected in _members(match[2])
            )
            certain = tool is not None and keyword is not None and not fits
            learned = self._is_learned(*_TYPE_NAME.findall(match[3]))
            return Mistake(one.line, message, certain, tool=tool, learned=learned)
        if match := _LIST_KEY.search(one.text):
            message = f"a list has no key {match[1]}: take one of its items first"
            learned = self._is_learned(*_TYPE_NAME.findall(one.text))
            return Mistake(one.line, message, True, learned=learned)
        if match := _DICT_INDEX.match(one.text):
            keys = self._list_keys(match[1])
            message = f"a dict, not a list (keys: {keys})"
            return Mistake(one.line, message, True, learned=self._is_learned(match[1]))
        if match := _NO_MEMBER.match(one.text):
            return Mistake(one.line, explain_member(match[1], match[2]), True)
        certain = one.code in _ALWAYS or (one.code in _OF_TOOLS and tool is not None)
        return Mistake(one.line, _plain(one.text), certain, tool=tool)

    def _is_learned(self, *labels: str) -> bool:
        return not self.stubs.learned_types.isdisjoint(labels)

    def _list_keys(self, label: str) -> str:
        known = self.stubs.keys.get(label, ())
        return ", ".join(known[:MAX_KEYS_SHOWN]) + (", …" if len(known) > MAX_KEYS_SHOWN else "")

    def _writes_key(self, at: _Finding, name: str) -> bool:
        """Whether the program adds this key to a value, at this place or another."""
        key = rf"""["']{re.escape(name)}["']"""
        if re.match(
            rf"{key}\s*:", self._rest(at)
        ):  # in the literal of a parameter: an unknown member
            return False
        assigned = rf"{key}\s*\]\s*(?:[-+*/%|&]|//|\*\*)?=(?!=)"
        updated = rf"(?:update\(|\|=)\s*\{{[^}}]*{key}\s*:|setdefault\(\s*{key}"
        named = rf"update\([^()]*\b{re.escape(name)}\s*=(?!=)"
        return re.search(f"{assigned}|{updated}|{named}", self.code) is not None

    def _rest(self, one: _Finding) -> str:
        """The line of the program from the place of the finding on."""
        return self.lines[one.line - 1][one.column - 1 :] if one.line <= len(self.lines) else ""


def _plain(text: str) -> str:
    """A message or a type in the words of a signature."""
    text = re.sub(r"Literal\[(.*?)\]", lambda match: match[1].replace(", ", "|"), text)
    return _TYPE_NAME.sub("dict", text).replace(SERVER_PREFIX, "")


def _members(text: str) -> list[str]:
    """The alternatives of a type: the parts between `|` outside brackets and quotes."""
    parts, depth, quoted, start = list[str](), 0, False, 0
    for position, character in enumerate(text):
        if character == '"' and text[position - 1 : position] != "\\":
            quoted = not quoted
        elif not quoted and character in "[(":
            depth += 1
        elif not quoted and character in "])":
            depth -= 1
        elif not quoted and character == "|" and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def _could_be(given: str, expected: str, stubs: Stubs) -> bool:
    if "Any" in (given, expected) or "Unknown" in given:
        return True
    ours, theirs = _kind(given, stubs), _kind(expected, stubs)
    if "other" in (ours, theirs):
        return True
    if given.startswith("Literal["):
        # The listed values decide: the validator converts only text that spells one of them.
        if expected.startswith("Literal["):
            return False
        said = _TEXT_LITERAL.fullmatch(given)
        written = {"number": _NUMBER, "truth": _TRUTH}.get(theirs)
        return ours == theirs or bool(said and written and written.fullmatch(said[1]))
    # The validator converts text to numbers and vice versa, so a wrong plain type proves nothing.
    return ours == theirs or {ours, theirs} <= {"text", "number", "truth"}


def _kind(text: str, stubs: Stubs) -> str:
    """The sort of value that one alternative of a type is."""
    if text.startswith("Literal["):
        inner = text.removeprefix("Literal[")
        if inner.startswith('"'):
            return "text"
        return "truth" if inner.startswith(("True", "False")) else "number"
    if text in stubs.keys or text.startswith("dict["):
        return "object"
    if text.startswith(("list[", "Sequence[", "tuple[", "set[")):
        return "array"
    return {"str": "text", "int": "number", "float": "number", "bool": "truth", "None": "null"}.get(
        text, "other"
    )
