"""Checking untrusted values against the records of `settings.py`, with errors that name the line.

This is the one place where configuration meets pydantic. It validates the frozen dataclasses
themselves, so there is no second model beside them, and it is imported only when there is something
to check.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from pegboard.config.documents import Document, KeyPath
from pegboard.core.json import JsonObject
from pegboard.errors import ConfigError

T = TypeVar("T")

_TYPE_NAMES = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a table",
    type(None): "null",
}


@lru_cache
def type_adapter(kind: type[T]) -> TypeAdapter[T]:
    """The validator of one record."""
    return TypeAdapter(kind)


def validate_record(
    kind: type[T],
    value: JsonObject,
    document: Document,
    at: KeyPath = (),
    written_as: Mapping[str, str] | None = None,
) -> tuple[T | None, list[ConfigError]]:
    """The record, or everything that is wrong with it.

    `at` is where `value` stands in the document; `written_as` gives back a client's own word for
    one of our keys, so that the error names what the person wrote.
    """
    try:
        # As JSON, strictness allows a list where a tuple is meant and an integer where a float is.
        text = json.dumps(value, default=str)
        return type_adapter(kind).validate_json(text, strict=True), []
    except ValidationError as exc:
        words = written_as or {}
        found = exc.errors(include_url=False, include_context=False)
        return None, [_to_config_error(kind, error, document, at, words) for error in found]


def raise_all(problems: Sequence[ConfigError]) -> None:
    """Raise what is wrong as one error, one line each; nothing when nothing is."""
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise ConfigError(
            "\n".join(p.message for p in problems), problems=[p.details for p in problems]
        )


def nearest_word(word: str, known: Iterable[str]) -> str | None:
    """The known word that was perhaps meant."""
    from rapidfuzz import fuzz, process, utils

    found = process.extractOne(
        word, list(known), scorer=fuzz.WRatio, processor=utils.default_process, score_cutoff=60
    )
    return found[0] if found else None


def _to_config_error(
    kind: type, error: Any, document: Document, at: KeyPath, words: Mapping[str, str]
) -> ConfigError:
    where: KeyPath = tuple(error["loc"])
    place = where if not where else (words.get(str(where[0]), where[0]), *where[1:])
    return document.error(_describe_error(kind, error, where), (*at, *place))


def _describe_error(kind: type, error: Any, where: KeyPath) -> str:
    match error["type"]:
        case "unexpected_keyword_argument":
            known = _known_keys(kind, where[:-1])
            near = nearest_word(str(where[-1]), known)
            hint = f" Did you mean {near!r}?" if near else f" Known: {', '.join(known)}."
            return f"there is no such setting.{hint}"
        case "missing":
            return "this is required."
        case "literal_error":
            return f"{_plain_words(error['msg'])}, not {error['input']!r}."
        case _:
            # The value itself stays out: it may be a secret in the wrong place.
            given = _TYPE_NAMES.get(type(error["input"]), "not")
            return f"{_plain_words(error['msg'])}; this is {given}."


_WORDS = {
    "Input should be": "this should be",
    "a valid string": "text",
    "a valid array": "a list",
    "a valid number": "a number",
    "a valid integer": "a whole number",
    "a valid boolean": "true or false",
    "an object": "a table",
}


def _plain_words(message: str) -> str:
    for theirs, ours in _WORDS.items():
        message = message.replace(theirs, ours)
    return message.rstrip(".")


def _known_keys(kind: Any, where: KeyPath) -> list[str]:
    """The keys of the record that stands at a place inside `kind`."""
    for part in where:
        kind = _nested_type(kind, part)
    if not (isinstance(kind, type) and is_dataclass(kind)):
        return []
    return ["import" if f.name == "imports" else f.name for f in fields(kind)]


def _nested_type(kind: Any, part: str | int) -> Any:
    if isinstance(kind, type) and is_dataclass(kind):
        kind = get_type_hints(kind).get(str(part))
    elif get_args(kind):
        kind = get_args(kind)[-1 if isinstance(part, str) else 0]
    if get_origin(kind) in (Union, types.UnionType):
        kind = next((k for k in get_args(kind) if k is not type(None)), kind)
    return kind
