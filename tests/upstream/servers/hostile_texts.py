"""What `hostile.py` lists: text that nobody sees, terminal escapes, and markup, everywhere."""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]

ZERO = "\u200b"
BIDI = "\u202e"
TAGS = "".join(chr(0xE0000 + ord(c)) for c in "obey")
SELECTORS = "\ufe01\ufe05"
HIDDEN = ZERO + BIDI + TAGS + SELECTORS
ANSI = "\x1b[31m\x1b]0;owned\x07\x9b2J"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
ENGLAND = "\U0001f3f4" + "".join(chr(0xE0000 + ord(c)) for c in "gbeng") + "\U000e007f"
HEART = "\u2764\ufe0f"
EMOJI = FAMILY + ENGLAND + HEART
BRACKETS = "[/etc/hosts] [bold]a[/bold] [link=http://evil]x[/link] :warning:"

SCHEMA: Message = {
    "type": "object",
    "title": f"T{HIDDEN}",
    "properties": {
        f"le{ZERO}vel": {
            "type": "string",
            "description": f"How {EMOJI} loud{HIDDEN}",
            "enum": [f"hi{TAGS}gh", "low", EMOJI],
            "default": f"hi{TAGS}gh",
            "examples": [f"hi{TAGS}gh"],
        },
        "kind": {"const": f"fix{SELECTORS}ed"},
        "nested": {
            "type": "object",
            "properties": {f"in{BIDI}ner": {"$ref": "#/$defs/Part"}},
            "required": [f"in{BIDI}ner"],
        },
        "free": {"type": "string"},
    },
    "required": [f"le{ZERO}vel"],
    "$defs": {"Part": {"type": "string", "enum": [f"a{ZERO}", "b"]}},
    f"x-{ZERO}note": f"note{HIDDEN}",
}
TOOLS: list[Message] = [
    {
        "name": "echo",
        "title": f"Echo{HIDDEN}",
        "description": f"Echoes {EMOJI}.{HIDDEN}{ANSI} {BRACKETS}",
        "inputSchema": SCHEMA,
        "outputSchema": {"type": "object", "properties": {f"o{ZERO}k": {"type": "string"}}},
        "annotations": {"title": f"E{HIDDEN}", "readOnlyHint": True},
        "_meta": {f"k{ZERO}": f"v{HIDDEN}", "io.github.pegboard/category": f"c{HIDDEN}"},
    },
    {
        "name": f"na{ZERO}me{ANSI}[/x]",
        "description": f"Hidden name. {BRACKETS}",
        "inputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
    },
    {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}},
    {"name": "die", "description": "Prints a secret and dies.", "inputSchema": {"type": "object"}},
]
PROMPTS: list[Message] = [
    {
        "name": f"gre{ZERO}et",
        "title": f"Greet{HIDDEN}",
        "description": f"Greets{HIDDEN} {EMOJI}",
        "arguments": [{"name": f"wh{ZERO}o", "description": f"Who{HIDDEN}", "required": True}],
    }
]
RESOURCES: list[Message] = [
    {"uri": f"memo://a{ZERO}b", "name": f"A{HIDDEN}", "description": f"D{HIDDEN}"}
]
TEMPLATES: list[Message] = [
    {"uriTemplate": f"memo://t{ZERO}/{{id}}", "name": f"T{HIDDEN}", "description": f"D{HIDDEN}"}
]
