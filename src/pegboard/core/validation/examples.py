"""Examples must be valid calls, written as arguments or as the text of a call."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import replace

from pegboard.core.json import Json, JsonObject
from pegboard.core.tools import Example, Tool
from pegboard.core.validation.validators import Validator
from pegboard.errors import ConfigError, InvalidArguments

_JSON_WORDS: Mapping[str, Json] = {"true": True, "false": False, "null": None}


def check_examples(tool: Tool) -> None:
    """Accept the examples of a tool.

    Raises:
        ConfigError: One is not a valid call; says which and why.
    """
    if not tool.examples:
        return
    validator = Validator(tool.input_schema)
    for example in tool.examples:
        try:
            validator.check(dict(example.invocation), tool.name)
        except InvalidArguments as exc:
            raise ConfigError(
                f"The example {example.description!r} is not a valid call of {exc.message}",
                tool=tool.id,
            ) from exc


def with_read_examples(tool: Tool) -> Tool:
    """The tool with the invocation of every example as a mapping of arguments.

    A text such as `search(query="x", limit=5)`, or the arguments as JSON, is read.

    Raises:
        ConfigError: One is neither; says of which tool it is and what to write.
    """
    return replace(tool, examples=tuple(_read(tool, example) for example in tool.examples))


def _read(tool: Tool, example: Example) -> Example:
    given: Json = example.invocation
    if isinstance(given, Mapping):
        return example
    if not isinstance(given, str):
        raise _unreadable(tool, example, f"it is of type {type(given).__name__}")
    try:
        return replace(example, invocation=_arguments(tool.name, given))
    except ValueError as exc:
        raise _unreadable(tool, example, str(exc)) from exc


def _unreadable(tool: Tool, example: Example, why: str) -> ConfigError:
    return ConfigError(
        f"The invocation of the example {example.description!r} of {tool.name!r} cannot be read: "
        f"{why}. Write its arguments as a dict, invocation={{'name': 'value'}}, or as the text of "
        f"a call, invocation=\"{tool.name}(name='value')\".",
        tool=tool.id,
    )


def _arguments(name: str, text: str) -> JsonObject:
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return _arguments_of_call(name, text)
    if not isinstance(arguments, dict):
        raise ValueError("it is JSON, and not an object")
    return arguments


def _arguments_of_call(name: str, text: str) -> JsonObject:
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as exc:
        raise ValueError("it is neither a call nor JSON") from exc
    if not isinstance(call, ast.Call):
        raise ValueError("it is neither a call nor JSON")
    called = call.func.attr if isinstance(call.func, ast.Attribute) else None
    called = call.func.id if isinstance(call.func, ast.Name) else called
    if called != name:
        raise ValueError(f"it calls {ast.unparse(call.func)!r}")
    if call.args or any(keyword.arg is None for keyword in call.keywords):
        raise ValueError("every argument needs its name in front")
    return {str(keyword.arg): _literal(keyword.value) for keyword in call.keywords}


def _literal(node: ast.expr) -> Json:
    try:
        return ast.literal_eval(_JsonWords().visit(node))
    except (ValueError, TypeError, RecursionError) as exc:
        raise ValueError(f"{ast.unparse(node)!r} is not a literal value") from exc


class _JsonWords(ast.NodeTransformer):
    """Takes `true`, `false` and `null` for what they are in JSON."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_JSON_WORDS[node.id]) if node.id in _JSON_WORDS else node
