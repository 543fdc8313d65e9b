"""What servers write about their tools, made safe to show: nothing hidden, nothing that repaints.

Characters that a person does not see and a model does (zero-width, bidirectional, tag characters),
and terminal escapes, are taken out of texts. Sentences that try to command a model are another
matter: whether they belong is a person's decision, so they are flagged and left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from pegboard.core.json import Json, JsonObject
from pegboard.core.tools import Definition, Schemas, Tool

FLAGS_KEY = "io.github.pegboard/flags"

_ANSI = re.compile(
    r"(?:\x1b|\x9b)(?:\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?"
    r"|\[?[0-?]*[ -/]*[@-~])"
)
_HIDDEN = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls, without tab and line breaks
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, marks
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f"  # zero-width, bidirectional, invisible operators
    "\u3164\ufeff\uffa0\ufff0-\ufffb"  # fillers, byte order mark, annotations
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"  # musical controls, tags, further selectors
    "\ud800-\udfff"  # halves of characters
    "]"
)
_TEXTS = frozenset({"description", "title", "$comment"})
_BY_NAME = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
"""Keywords whose keys are names that somebody chose, not keywords."""

_SUSPICIOUS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (what, re.compile(pattern, re.IGNORECASE))
    for what, pattern in (
        (
            "overrides instructions",
            r"\b(ignore|disregard|forget|override)\b[^.]{0,40}"
            r"\b(previous|prior|above|earlier|other|all|system)\b[^.]{0,20}"
            r"\b(instruction|prompt|rule|message|guideline)s?",
        ),
        (
            "keeps something from the user",
            r"\b(do not|don'?t|never|without)\b[^.]{0,30}"
            r"\b(tell|telling|inform|mention|mentioning|notify|reveal|show|asking)\b[^.]{0,30}"
            r"\b(user|human|person|anyone|anybody)\b",
        ),
        (
            # An opening `<secret>` alone is how commands write a placeholder: `--secret <secret>`.
            "poses as a system message",
            r"<\s*/?\s*(important|system|instructions?)\s*>|<\s*/\s*secret\s*>",
        ),
        ("poses as a role", r"^\s*(system|assistant)\s*:"),
        (
            "asks for secrets",
            # A command to read or pass on, and then a place or a name of secrets. Hosts such as
            # docs.aws.amazon.com, public keys and the names of parameters are neither.
            r"\b(read|open|cat|copy|send|pass|include|attach|upload|paste)\b[^.\n]{0,40}"
            r"((?<![\w.])\.(ssh|aws|gnupg|env|netrc|cursor/mcp\.json)\b(?!\S*\.pub\b)"
            r"|\bid_rsa\b(?!\.pub\b))|"
            r"\b(read|send|include|pass|reveal)\s+((the )?contents? of\s+)?"
            r"(the|any|all|your|their|its|the user'?s)\s+(\w+\s+)?"
            r"(private key|password|credential|api key)s?\b",
        ),
        (
            "steers other tools",
            r"\b(before|after|instead of|whenever)\b[^.]{0,30}"
            r"\b(using|calling|use|call|invoke|invoking)\b[^.]{0,30}"
            # "Before using other tools" is how servers say which of theirs comes first.
            r"\b(any|every|all|each)\b[^.]{0,15}\btools?\b",
        ),
        ("sends data out", r"\b(send|post|upload|forward|exfiltrate)\b[^.]{0,60}https?://"),
    )
)


def clean(text: str) -> str:
    """The text without terminal escapes and without characters that nobody sees."""
    if text.isascii() and text.isprintable():
        return text
    return _HIDDEN.sub("", _ANSI.sub("", text))


def escaped(text: str) -> str:
    """The text with what `clean` would take out spelled as code points, for a person to see."""
    return _HIDDEN.sub(lambda found: f"\\u{{{ord(found.group()):x}}}", text)


def suspicions(text: str) -> tuple[str, ...]:
    """What a text does that a description should not; empty for ordinary ones."""
    return tuple(what for what, pattern in _SUSPICIOUS if pattern.search(text))


def clean_schema(schema: Json) -> Json:
    """The schema with clean titles and descriptions; what it accepts stays as it is."""
    return _walk(schema, clean)


def cleaned(tool: Tool) -> Tool:
    """The tool with clean texts, and with flags in its `_meta` where they look suspicious.

    Its schemas are cleaned when somebody asks for them.
    """
    description = clean(tool.description)
    flags = suspicions(f"{tool.title or ''}\n{description}")
    meta = {k: v for k, v in tool.meta.items() if k != FLAGS_KEY}
    return replace(
        tool,
        definition=_Clean(tool.definition),
        summary=clean(tool.summary),
        description=description,
        title=clean(tool.title) if tool.title else tool.title,
        meta={**meta, FLAGS_KEY: list(flags)} if flags else meta,
    )


def flags_of(entry: JsonObject) -> tuple[str, ...]:
    """What is suspicious in a whole `tools/list` entry, its parameters included."""
    texts: list[str] = []
    _walk(entry, lambda text: texts.append(text) or text)
    return suspicions(clean("\n".join(texts)))


@dataclass(frozen=True, slots=True)
class _Clean:
    """A definition whose texts are cleaned when it is read."""

    definition: Definition

    def __call__(self) -> Schemas:
        return _in_use(self.definition)

    def read_once(self) -> Schemas:
        found = self.definition()
        output = None if found.output is None else clean_schema(found.output)
        return Schemas(clean_schema(found.input), output)


@lru_cache(maxsize=1024)
def _in_use(definition: Definition) -> Schemas:
    """The schemas that are in use: those of thousands of tools would fill the memory."""
    return _Clean(definition).read_once()


def _walk(value: Json, change: Callable[[str], str], named: bool = False) -> Json:
    """The value with every text under a keyword for texts changed; equal parts are not copied."""
    if isinstance(value, list):
        parts = [_walk(part, change) for part in value]
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    if not isinstance(value, dict):
        return value
    changed: JsonObject = {}
    for key, part in value.items():
        if isinstance(part, str):
            changed[key] = change(part) if key in _TEXTS and not named else part
        else:
            changed[key] = _walk(part, change, not named and key in _BY_NAME)
    same = all(changed[key] is part for key, part in value.items())
    return value if same else changed
