"""The change of a client's file as a diff for people: without secrets, and otherwise as it is.

Secrets are found in the parsed file, by the names of keys and the forms of values, and replaced in
the text where exactly that value is written. Replacing them in the lines of a finished diff would
also hit paths and words that happen to contain one. A reference such as `${GITHUB_TOKEN}` is not a
secret and stays readable.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from pegboard.config.documents import parse_document
from pegboard.core.json import Json
from pegboard.core.redaction import REDACTED, Redactor, is_secret
from pegboard.install.client_files import FileContent

_LONG = 8
"""Characters from which a value is unlikely to be part of anything else in the file."""
_REFERENCES = re.compile(r"(?:(?:Bearer|Basic|token)\s+)?(?:\$?\{[^{}]*\}|\$\w+)+", re.IGNORECASE)
_DEFAULT = ":-"


def redacted_diff(path: Path, before: bytes | None, after: bytes | None) -> str:
    """The change as a unified diff without secrets."""
    old, new = (_redact(FileContent(path, data).text, path) for data in (before, after))
    name = str(path)
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), name, name, lineterm="")
    return "\n".join(lines)


def _redact(text: str, path: Path) -> str:
    if not text.strip():
        return text
    redactor = Redactor()
    for key, value, redacted in _secrets(parse_document(text, path).value, redactor):
        text = _replace_value(text, key, value, redacted)
    return redactor.message(text)  # comments may have keys of well-known forms too


def _secrets(value: Json, redactor: Redactor, key: str = "") -> Iterator[tuple[str, str, str]]:
    """Key, value and redacted value of every text that is or contains a secret."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _secrets(part, redactor, str(name))
    elif isinstance(value, list):
        for part in value:
            yield from _secrets(part, redactor, key)
    elif isinstance(value, str) and value and not _is_reference(value):
        redacted = REDACTED if is_secret(key) else str(redactor.text(value))
        if redacted != value:
            yield key, value, redacted


def _is_reference(value: str) -> bool:
    return _REFERENCES.fullmatch(value.strip()) is not None and _DEFAULT not in value


def _replace_value(text: str, key: str, value: str, redacted: str) -> str:
    literals = [json.dumps(value), json.dumps(value, ensure_ascii=False), f"'{value}'"]
    for literal in literals:
        new = literal[0] + json.dumps(redacted, ensure_ascii=False)[1:-1] + literal[-1]
        if len(value) < _LONG:  # a short value may be written elsewhere with another meaning
            beside = re.compile(rf"({re.escape(key)}[\"']?\s*[:=]\s*){re.escape(literal)}")
            text = beside.sub(lambda found, new=new: found[1] + new, text)
        else:
            text = text.replace(literal, new)
    if len(value) >= _LONG:
        return text.replace(value, redacted)  # unquoted, in several places, or in a comment
    bare = re.compile(
        rf"^(\s*{re.escape(key)}\s*:\s*){re.escape(value)}(?=\s*(?:#|$))", re.MULTILINE
    )
    return bare.sub(lambda found: found[1] + redacted, text)
