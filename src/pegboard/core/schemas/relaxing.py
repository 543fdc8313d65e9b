"""An output schema that still fits when a part of the result was left out.

A client that was told a tool's output schema refuses results that do not fit it. A projection takes
members and items away and invents nothing, so a schema without every assertion that something *is
there* fits whatever it leaves. Kept are the assertions about what is there: types, formats, limits
from above.
"""

from __future__ import annotations

from pegboard.core.json import Json, JsonObject
from pegboard.core.schemas.keywords import ANNOTATIONS, fits, with_children
from pegboard.core.schemas.references import NOTHING, localised, lookup

_DEMANDS = frozenset(
    {"required", "minProperties", "dependentRequired", "minItems", "contains", "minContains"}
    | {"maxContains", "uniqueItems", "unevaluatedProperties", "unevaluatedItems"}
    # What applies only if something else does or does not hold may change sides.
    | {"not", "if", "then", "else", "dependentSchemas", "dependencies"}
    # Positions move when items go.
    | {"prefixItems", "additionalItems"}
)


def relaxed_output(schema: Json) -> JsonObject:
    """A schema that any projection of a valid result fits; itself when it asks for nothing."""
    if not isinstance(schema, dict) or not fits(schema):
        return {"type": "object"}
    root, certain = localised(schema)
    if not certain:
        return {"type": "object"}
    made = _relaxed(root)
    made = _without_lost(made, made)
    return schema if made == schema else made


def _relaxed(schema: Json) -> Json:
    if not isinstance(schema, dict):
        return schema is not False
    dropped = _DEMANDS | {
        keyword for keyword in ("enum", "const") if _has_parts(schema.get(keyword))
    }
    if "prefixItems" in schema or isinstance(schema.get("items"), list):
        dropped |= {"items"}
    if schema.get("additionalProperties") is False:
        dropped |= {"additionalProperties"}
    kept = {k: v for k, v in schema.items() if k not in dropped}
    made = with_children(kept, lambda child, _: _relaxed(child))
    if "oneOf" in made:  # with less in it, a value may fit several
        either = {"anyOf": made.pop("oneOf")}
        made = (
            {**made, "allOf": [*made.get("allOf", []), either]}
            if "anyOf" in made
            else made | either
        )
    return made


def _has_parts(values: Json) -> bool:
    """Whether a literal is an object or a list, of which a projection may take something away."""
    if isinstance(values, list):
        return any(isinstance(value, (dict, list)) for value in values)
    return isinstance(values, dict)


def _without_lost(schema: Json, root: JsonObject) -> Json:
    """Anything in place of a reference to what is no longer there."""
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and lookup(root, reference) is NOTHING:
        return {keyword: value for keyword, value in schema.items() if keyword in ANNOTATIONS}
    return with_children(schema, lambda child, _: _without_lost(child, root))
