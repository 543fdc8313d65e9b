r"""Sanitizing text from servers: no hidden characters, no terminal escapes.

Some characters are read by a model and seen by no person: zero-width and bidirectional characters,
tag characters, variation selectors, control characters. What happens to them depends on the use of
the text:

    prose          titles, descriptions, messages         removed (`sanitize_text`)
    names, values  sent back in a call: property          escaped as `\u{200b}` (`escape_value`) and
                   names, enum values, prompt names       restored before it (`restore_originals`)
    addresses      URIs of resources                      percent-encoded (`escape_uri`)

So a server receives exactly the names and values that it listed. Emoji are made of several of these
characters; ordinary emoji sequences stay as they are. Sentences that try to command a model are
flagged and left as they are: whether they are justified is for a person to decide.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal, TypeAlias
from urllib.parse import quote

from pegboard.core.json import Json, JsonObject
from pegboard.core.tools import Definition, Schemas, Tool

FLAGS_KEY = "io.github.pegboard/flags"

_ANSI = re.compile(
    r"(?:\x1b|\x9b)(?:\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?"
    r"|\[?[0-?]*[ -/]*[@-~])"
)
_INVISIBLE = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls, except tab and line breaks
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, marks
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # zero-width, line breaks, bidirectional, operators
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"  # fillers, variation selectors, byte order mark
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # controls of scripts
    "\U000e0000-\U000e0fff"  # tags, further variation selectors
    "\ud800-\udfff"  # lone surrogates
)
_EMOJI = (
    "[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf"
    "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
    "[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?"
)


# Tag characters after a black flag could spell any text, so only the three flags in use are kept: a
# tag character is a letter, moved up by 0xE0000.
_FLAGS = "|".join(
    f"\U0001f3f4{''.join(chr(0xE0000 + ord(letter)) for letter in code)}\U000e007f"
    for code in ("gbeng", "gbsct", "gbwls")
)
_EMOJI_SEQUENCE = f"(?:{_FLAGS}|{_EMOJI})(?:\u200d{_EMOJI})*|[0-9#*]\ufe0f\u20e3"
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://\S+")
_HIDDEN = re.compile(f"[{_INVISIBLE}]|\r(?!\n)")
_HIDDEN_OR_EMOJI = re.compile(f"({_EMOJI_SEQUENCE})|[{_INVISIBLE}]|\r(?!\n)")
_HIDDEN_IN_NAME = re.compile(f"[{_INVISIBLE}\t\n\r]")
_HIDDEN_IN_NAME_OR_EMOJI = re.compile(f"({_EMOJI_SEQUENCE})|[{_INVISIBLE}\t\n\r]")

_Role: TypeAlias = Literal[
    "schema", "names", "name", "definitions", "reference", "pattern", "value"
]
_ROLE_OF: Final[Mapping[str, _Role]] = {
    "properties": "names",
    "dependentSchemas": "names",
    "dependentRequired": "name",
    "required": "name",
    "$defs": "definitions",
    "definitions": "definitions",
    "$ref": "reference",
    "$dynamicRef": "reference",
    "$id": "reference",
    "$anchor": "reference",
    "$dynamicAnchor": "reference",
    "pattern": "pattern",
    "patternProperties": "pattern",
    "enum": "value",
    "const": "value",
    "default": "value",
    "examples": "value",
    "example": "value",
}
"""What the strings under a keyword of JSON Schema are; under all others they are prose."""

_PROSE = frozenset({"description", "title", "$comment", "message"})
_KEYED_BY_NAME = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}
)
"""Keywords whose keys are names that an author chose, not keywords."""

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
            # `*+` never backtracks into white space, which would take quadratic time.
            r"<\s*+(/\s*+)?(important|system|instructions?)\s*>|<\s*+/\s*secret\s*>",
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


def sanitize_text(text: str) -> str:
    """The text without terminal escapes and hidden characters."""
    if text.isascii() and text.isprintable():  # most texts
        return text
    text = _ANSI.sub("", text)
    # Line breaks that hardly anybody sees as such; without them, two words would become one.
    text = text.replace("\u2028", "\n").replace("\u2029", "\n")
    return (
        _HIDDEN_OR_EMOJI.sub(lambda found: found[1] or "", text) if _HIDDEN.search(text) else text
    )


def escape_hidden(text: str) -> str:
    """The text with the characters that `sanitize_text` removes as escapes, for a person to see.

    Applying it twice changes nothing more, so it is right for output of any origin.
    """
    return _HIDDEN_OR_EMOJI.sub(_code_point, text) if _HIDDEN.search(text) else text


def escape_hidden_json(text: str) -> str:
    """JSON text with hidden characters as JSON escapes: the value is the same."""
    if not _HIDDEN.search(text):
        return text
    return _HIDDEN_OR_EMOJI.sub(lambda found: found[1] or _json_escape(found[0]), text)


def escape_value(text: str) -> str:
    """A value with hidden characters as escapes; different values stay different."""
    # An escape that the server wrote itself must not look like one of ours.
    if "\\u{" in text:
        text = text.replace("\\u{", "\\u{5c}u{")
    return escape_hidden(text)


def escape_name(text: str) -> str:
    """A name, escaped like a value and on one line."""
    text = escape_value(text)
    if not _HIDDEN_IN_NAME.search(text):
        return text
    return _HIDDEN_IN_NAME_OR_EMOJI.sub(_code_point, text)


def escape_uri(uri: str) -> str:
    """A URI with hidden characters percent-encoded."""
    if not _HIDDEN_IN_NAME.search(uri):
        return uri
    return _HIDDEN_IN_NAME_OR_EMOJI.sub(
        lambda found: found[1] or quote(found[0], errors="surrogatepass"), uri
    )


def restore_originals(value: Json, originals: Mapping[str, str]) -> Json:
    """A value that a model sent, with every escaped name and text replaced by the original."""
    if isinstance(value, str):
        return originals.get(value, value)
    if isinstance(value, list):
        return [restore_originals(part, originals) for part in value]
    if isinstance(value, dict):
        return {
            originals.get(k, k): restore_originals(part, originals) for k, part in value.items()
        }
    return value


def sanitize_line(text: str, limit: int) -> str:
    """A text as one clean line of at most `limit` characters, cut at a word where it is longer."""
    line = " ".join(sanitize_text(text[: 8 * limit]).split())
    if len(line) <= limit:
        return line
    return line[: limit - 1].rsplit(" ", 1)[0].rstrip(",;:-( ") + "…"


def find_suspicious_phrases(text: str) -> tuple[str, ...]:
    """What is suspicious about a description; empty for ordinary ones."""
    return tuple(what for what, pattern in _SUSPICIOUS if pattern.search(text))


def sanitize_schema(schema: Json) -> Schemas:
    """A sanitized input schema, with the originals of the names and values escaped in it."""
    originals: dict[str, str] = {}
    shown = _sanitize_part(schema, "schema", originals)
    return Schemas(shown, originals=originals)


def sanitize_output_schema(schema: JsonObject | None) -> JsonObject | None:
    """A sanitized output schema; `None` if its names or values have hidden characters.

    Clients check results against it, and results have the server's own names, so nothing in it can
    be escaped.
    """
    originals: dict[str, str] = {}
    shown = None if schema is None else _sanitize_part(schema, "schema", originals)
    return None if originals else shown


def sanitize_value(value: Json) -> Json:
    """A value with sanitized strings, keys and URIs; the same object if nothing changes."""
    if isinstance(value, str):
        return escape_uri(value) if _URI.fullmatch(value) else sanitize_text(value)
    if isinstance(value, list):
        parts = [sanitize_value(part) for part in value]
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    if isinstance(value, dict):
        entry = {escape_name(key): sanitize_value(part) for key, part in value.items()}
        return value if all(entry.get(k) is part for k, part in value.items()) else entry
    return value


def sanitize_prose(value: Json) -> Json:
    """A question to a person, such as an elicitation, with its prose sanitized and nothing else."""
    return _map_prose(value, sanitize_text)


def sanitize_entry(entry: JsonObject) -> JsonObject:
    """The entry of a prompt or resource: names escaped, prose sanitized."""
    shown: JsonObject = sanitize_value(entry)
    named: JsonObject = {}
    if isinstance(entry.get("name"), str):
        named["name"] = escape_name(entry["name"])
    arguments = entry.get("arguments")
    if isinstance(arguments, list):
        named["arguments"] = [sanitize_entry(a) for a in arguments if isinstance(a, dict)]
    return {**shown, **named} if shown is not entry or named else shown


def sanitize_tool(tool: Tool) -> Tool:
    """The sanitized tool, with flags in its `_meta` where its texts look suspicious.

    Its schemas are sanitized when they are read.
    """
    description = sanitize_text(tool.description)
    flags = find_suspicious_phrases(f"{tool.title or ''}\n{tool.summary}\n{description}")
    # The flags are ours: a server cannot set them, and cannot remove them either.
    meta = {k: v for k, v in sanitize_value(dict(tool.meta)).items() if k != FLAGS_KEY}
    shown = replace(
        tool,
        definition=_SanitizedDefinition(tool.definition),
        summary=sanitize_text(tool.summary),
        description=description,
        title=sanitize_text(tool.title) if tool.title else tool.title,
        category=escape_name(tool.category) if tool.category else tool.category,
        tags=tuple(sanitize_text(tag) for tag in tool.tags),
        deprecated=sanitize_text(tool.deprecated) if tool.deprecated else tool.deprecated,
        annotations=sanitize_value(dict(tool.annotations)),
        icons=tuple(sanitize_value(icon) for icon in tool.icons),
        execution=sanitize_value(dict(tool.execution)),
        meta={**meta, FLAGS_KEY: list(flags)} if flags else meta,
    )
    # A tool with a hidden character in its name is called by the escaped name; `raw_name` is what
    # its server receives.
    tool_id = escape_name(tool.id)
    if tool_id == tool.id:
        return shown
    return replace(
        shown,
        id=tool_id,
        name=escape_name(tool.name),
        bare=escape_name(tool.bare or ""),
        raw_name=tool.own_name,
    )


def find_flags(entry: JsonObject) -> tuple[str, ...]:
    """What is suspicious in a whole `tools/list` entry, including its parameters."""
    texts: list[str] = []
    _map_prose(entry, lambda text: texts.append(text) or text)
    return find_suspicious_phrases(sanitize_text("\n".join(texts)))


@dataclass(frozen=True, slots=True)
class _SanitizedDefinition:
    """A definition that is sanitized when it is read."""

    definition: Definition

    def __call__(self) -> Schemas:
        return _cached_schemas(self.definition)

    def read_once(self) -> Schemas:
        found = self.definition()
        shown = sanitize_schema(found.input)
        return shown._replace(output=sanitize_output_schema(found.output))


@lru_cache(maxsize=1024)
def _cached_schemas(definition: Definition) -> Schemas:
    """The schemas in use; only some are cached, because a catalog may have thousands of tools."""
    return _SanitizedDefinition(definition).read_once()


def _sanitize_part(value: Json, role: _Role, originals: dict[str, str]) -> Json:
    """A sanitized part of a schema; unchanged parts are not copied.

    One stack frame for each level, so that a schema as deep as the parser accepts fits the stack.
    """
    if isinstance(value, str):
        return _sanitize_string(value, role, originals)
    if isinstance(value, list):
        parts: list[Json] = []
        for part in value:
            # A comprehension would be another frame on Python 3.11.
            parts.append(_sanitize_part(part, role, originals))  # noqa: PERF401
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    if not isinstance(value, dict):
        return value
    shown: JsonObject = {}
    for key, part in value.items():
        inner: _Role = role
        if role == "schema":
            inner = _ROLE_OF.get(key, "schema")
        elif role in ("names", "definitions", "pattern"):
            inner = "schema"
        if role == "schema":
            shown_key = escape_name(key)
        else:  # a name that an author chose; inside a value, the key of an object
            shown_key = _sanitize_string(key, "name" if role == "value" else role, originals)
        shown[shown_key] = _sanitize_part(part, inner, originals)
    same = all(shown.get(key) is part for key, part in value.items())
    return value if same else shown


def _sanitize_string(text: str, role: _Role, originals: dict[str, str]) -> str:
    match role:
        case "value":
            shown = escape_value(text)
        case "name" | "names":
            shown = escape_name(text)
        case "reference" | "definitions":  # never sent in a call, so there is nothing to restore
            return escape_name(text)
        case "pattern":
            return escape_hidden(text)  # in a regular expression `\\u{200b}` means that character
        case "schema":
            return sanitize_text(text)
    if shown != text:
        originals[shown] = text
    return shown


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _code_point(found: re.Match[str]) -> str:
    return found[1] or f"\\u{{{ord(found[0]):x}}}"


def _map_prose(value: Json, change: Callable[[str], str], named: bool = False) -> Json:
    """The value with `change` applied to all prose; unchanged parts are not copied."""
    if isinstance(value, list):
        parts = [_map_prose(part, change) for part in value]
        return value if all(a is b for a, b in zip(parts, value, strict=True)) else parts
    if not isinstance(value, dict):
        return value
    changed: JsonObject = {}
    for key, part in value.items():
        if isinstance(part, str):
            changed[key] = change(part) if key in _PROSE and not named else part
        else:
            changed[key] = _map_prose(part, change, not named and key in _KEYED_BY_NAME)
    return value if all(changed[key] is part for key, part in value.items()) else changed
