"""Schemas without the titles that generators derive from names.

pydantic titles every property, class and root with its own name in other letters (`due_on` is
"Due On"). Nobody learns anything from it, and it is a fifth of the tokens of a generated schema. A
title that an author wrote differs from the name and stays.
"""

from __future__ import annotations

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.keywords import DEFINITIONS, Path, with_children


def without_titles(schema: JsonObject) -> JsonObject:
    """The same schema without generated titles, at every depth."""
    title = schema.get("title")
    generated = isinstance(title, str) and title.isidentifier()  # the name of a class
    return _without(schema, title if generated else None)


def _without(schema: JsonObject, generated: Json) -> JsonObject:
    if generated is not None and schema.get("title") == generated:
        schema = {key: value for key, value in schema.items() if key != "title"}
    return with_children(schema, _child)


def _child(schema: Json, path: Path) -> Json:
    if not isinstance(schema, dict):
        return schema
    match path:
        case ("properties", name):
            return _without(schema, name.title().replace("_", " ").strip())
        case (keyword, name) if keyword in DEFINITIONS:
            return _without(schema, name)
        case _:
            return _without(schema, None)
