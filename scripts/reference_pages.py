"""Generates the reference from the code: methods, meta-tools, settings, commands, errors.

The requests and responses in it are real: the script sends them to the board of the quick start.
With `--check` it only prints the pages that are out of date.
"""

# ruff: noqa: E501 sentences of the pages

from __future__ import annotations

import inspect
import json
import re
import runpy
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import typer.main

from pegboard import errors
from pegboard.cli.app import app
from pegboard.cli.help_pages import EXAMPLES
from pegboard.config.schema import settings_schema
from pegboard.core.calls import Caller
from pegboard.core.options import MODES
from pegboard.modes.aliases import ALIASES
from pegboard.modes.auto import MODES_BY_NAME, known_clients
from pegboard.modes.mode import build_listed_meta_tools
from pegboard.server.extension_methods import METHODS
from pegboard.server.tool_methods import ToolMethods, ToolRequest
from pegboard.tokens import count_tokens

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "reference"
_WRITTEN = "<!-- Written by scripts/reference_pages.py: change the code, then run it. -->\n"


def pages() -> dict[Path, str]:
    """The current content of every page, by path."""
    made = {
        "settings": settings_page(),
        "cli": cli_page(),
        "errors": errors_page(),
        "methods": anyio.run(methods_page),
        "meta-tools": anyio.run(meta_tools_page),
    }
    made["../how-to/client-notes"] = clients_page()
    return {
        (PAGES / f"{name}.md").resolve(): f"{_WRITTEN}{text.rstrip()}\n"
        for name, text in made.items()
    }


# Settings --------------------------------------------------------------------------------------


def settings_page() -> str:
    """Every setting of `pegboard.toml`, table by table."""
    schema = settings_schema()
    parts = [
        "# Settings",
        "This page lists all settings in `pegboard.toml`. [Configuration](configuration.md) explains how files, environment variables "
        "and flags are combined. [`pegboard.schema.json`](pegboard.schema.json) is the JSON Schema of the file, for editors.",
        *_table("", schema, schema["$defs"]),
    ]
    return "\n\n".join(parts)


def _table(name: str, schema: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[str]:
    rows = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    deeper: list[tuple[str, Mapping[str, Any]]] = []
    for key, value in schema["properties"].items():
        path = f"{name}.{key}".lstrip(".")
        inner, where = _inner(value, known, path)
        if inner is not None:
            deeper.append((where, inner))
        if inner is None or where != path:
            said = value.get("description", "") or (inner or {}).get("description", "")
            default = _default(value)
            rows.append(f"| `{key}` | {_type(value)} | {default} | {_cell(said)} |")
    title = f"## `[{name}]`" if name else "## Top level"
    if len(rows) > 2:
        about = schema.get("description", "") if name else "Settings outside any table."
        yield f"{title}\n\n{_cell(about)}\n\n" + "\n".join(rows)
    for where, inner in deeper:
        yield from _table(where, inner, known)


def _inner(
    value: Mapping[str, Any], known: Mapping[str, Any], path: str
) -> tuple[Mapping[str, Any] | None, str]:
    """The record that a setting holds, holds many of by name, or holds a list of."""
    for holder, where in (
        (value, path),
        (value.get("additionalProperties"), f"{path}.NAME"),
        (value.get("items"), f"[{path}]"),
        *((option, path) for option in value.get("anyOf", ())),
    ):
        if isinstance(holder, dict) and "$ref" in holder:
            found = known[holder["$ref"].rpartition("/")[2]]
            return (found, where) if "properties" in found else (None, path)
    return None, path


def _type(value: Mapping[str, Any]) -> str:
    if "enum" in value:
        return " \\| ".join(f"`{json.dumps(v)}`" for v in value["enum"])
    if "anyOf" in value:
        return " \\| ".join(
            dict.fromkeys(_type(v) for v in value["anyOf"] if v != {"type": "null"})
        )
    if "$ref" in value:
        return "table"
    kind = value.get("type", "any")
    if kind == "array":
        item = _type(value.get("items", {}))
        return f"list of {item}s" if item in ("string", "table") else f"list of {item}"
    if kind == "object":
        return "table"
    return str(kind)


def _default(value: Mapping[str, Any]) -> str:
    if value.get("default") in (None, [], {}):
        return ""
    return f"`{json.dumps(value['default'], ensure_ascii=False)}`"


# Commands --------------------------------------------------------------------------------------


def cli_page() -> str:
    """Every command with its options."""
    group: Any = typer.main.get_command(app)
    parts = [
        "# Command line",
        "Every command exits with status 0 on success, 1 if the operation or check failed, 2 for wrong usage, and 3 for an "
        "invalid configuration. Add `--debug` to any command to see the traceback of an error, and `-h` for its help with "
        "examples. The environment variable `NO_COLOR` turns colors off.",
        "`pegboard` alone shows the MCP clients on this machine and what to run next. It starts nothing.",
        "## Without `--config`",
        "Commands that need servers look for a configuration in this order:\n\n"
        "1. `pegboard.toml` in the current folder, if you have trusted it. You are asked once, and shown the commands that the file "
        "runs. If the file, or a file that it imports, changes, you are asked again. Without a terminal, nobody can be asked and the file "
        "is not used, so a cloned repository cannot run anything on your machine.\n"
        "2. `pegboard.toml` in your configuration folder: `~/.config/pegboard`, `~/Library/Application Support/pegboard`, "
        "`%APPDATA%/pegboard`, or the folder in `PEGBOARD_CONFIG_HOME`.\n"
        "3. The servers of all MCP clients on this machine, including those behind an installed Pegboard.\n\n"
        "The command says which one it uses, on standard error.",
    ]
    parts += [_command(f"pegboard {name}", one) for name, one in sorted(group.commands.items())]
    return "\n\n".join(parts)


def _command(name: str, command: Any) -> str:
    text = inspect.cleandoc(command.help or "").split("\f")[0].strip()
    inner = getattr(command, "commands", None)
    if inner:
        below = [_command(f"{name} {word}", one) for word, one in sorted(inner.items())]
        return "\n\n".join([f"## `{name}`", text, *below])
    examples = EXAMPLES.get(name.removeprefix("pegboard "), ())
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join([name, *(_argument(a) for a in arguments), "[OPTIONS]" if options else ""])
    shown = [f"## `{name}`", text, f"```console\n$ {usage.strip()}\n```"]
    if options:
        rows = [f"| {_option(o)} | {_cell(o.help or '')} |" for o in options]
        shown.append("\n".join(["| option | meaning |", "|---|---|", *rows]))
    if examples:
        shown.append("\n".join(["```console", *(f"$ {one}" for one in examples), "```"]))
    return "\n\n".join(shown)


def _argument(argument: Any) -> str:
    name = (argument.metavar or argument.name or "").upper()
    many = f"{name}..." if argument.nargs == -1 else name
    return many if argument.required else f"[{many}]"


def _option(option: Any) -> str:
    names = ", ".join(f"`{n}`" for n in [*option.opts, *option.secondary_opts])
    return names if option.is_flag else f"{names} `{option.metavar or 'VALUE'}`"


# Clients ---------------------------------------------------------------------------------------


def clients_page() -> str:
    """What is known of MCP clients, and what `auto` makes of it."""
    rows = [
        f"| {c.title} | `{c.name}` | {_yes(c.follows_list_changed)} | {_yes(c.defers_tools)} "
        f"| {_link_urls(_cell(c.note))} | {_link_urls(_cell(c.source))} |"
        for c in sorted(known_clients().values(), key=lambda c: c.title.lower())
    ]
    parts = [
        "# Client notes",
        "This page lists how known MCP clients behave, with a source for each. For clients before MCP 2026-07-28, `auto` mode depends on "
        "the name that the client reports: a client that defers tools itself gets `eager`. In newer protocol versions, the client's name must not change behavior, "
        "so `pegboard install` writes the mode into the client's configuration instead. `[clients]` in `pegboard.toml` overrides both.",
        "\n".join(
            ["| client | reported name | follows `list_changed` | defers tools | note | source |",
             "|---|---|---|---|---|---|", *rows]
        ),
    ]  # fmt: skip
    return "\n\n".join(parts)


def _link_urls(text: str) -> str:
    """The text with each URL as a link: whole URLs do not fit a table."""
    return re.sub(r"https://[^\s)]+", r"[source](\g<0>)", text)


def _yes(value: bool) -> str:
    return "yes" if value else "no"


# Errors ----------------------------------------------------------------------------------------


def errors_page() -> str:
    """The whole tree, by who must act."""
    parts = [
        "# Errors",
        "Every error is a `PegboardError` with a `message` that says what to do next, and `details` that contain the "
        "same information as data. Errors that a model can correct are returned as a result with `isError` and "
        '`{"error": {"kind", "message", ...}}`. Invalid use of the protocol is a JSON-RPC error.',
        "| error | `kind` on the wire | is a | meaning |\n|---|---|---|---|\n"
        + "\n".join(_error(getattr(errors, name)) for name in errors.__all__),
    ]
    return "\n\n".join(parts)


def _error(kind: type[errors.PegboardError]) -> str:
    base = kind.__bases__[0].__name__
    said = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0]
    return f"| `{kind.__name__}` | `{kind.kind}` | `{base}` | {_cell(said)} |"


# The wire --------------------------------------------------------------------------------------


async def methods_page() -> str:
    """The methods that Pegboard adds to the protocol, with real answers."""
    parts = [
        "# Methods",
        "This page describes the methods that Pegboard adds to MCP. They are advertised as "
        "`io.github.pegboard/lazy-tools`, under `capabilities.extensions` (MCP 2026-07-28) or "
        "`capabilities.experimental` (earlier). The examples are real responses from the board on the "
        "[home page](../index.md#a-first-server).",
        "## `tools/list` with `lazy`",
        'MCP\'s own method with one more parameter, `lazy`, which can also be sent as `_meta["io.github.pegboard/lazy"]`: `true` returns '
        'stubs, `"bare"` returns stubs without `inputSchema`, and `false` returns full definitions, regardless of the mode. With `false` and '
        '`_meta["io.github.pegboard/details"]: true`, the `_meta` of each entry also contains category, summary, examples, related '
        "tools, aliases, tags, deprecation and descriptions of result fields, under `io.github.pegboard/`. A gateway requests them from "
        "a server that advertises this extension, so that one Pegboard can run behind another.",
        await _exchange("tools/list", {"lazy": "bare"}),
    ]
    examples: dict[str, Any] = {
        "tools/describe": {"names": ["read_note"]},
        "tools/describe_batch": {"names": ["save_note", "save_notes"]},
        "tools/manifest": {},
    }
    for method, answer in METHODS.items():
        said = inspect.cleandoc(answer.__doc__ or "")
        parts += [f"## `{method}`", said, await _exchange(method, examples[method])]
    return "\n\n".join(parts)


async def meta_tools_page() -> str:
    """The meta-tools of each mode with their token cost, and those that no mode lists."""
    parts = [
        "# Meta-tools",
        "This page shows the meta-tools that each mode lists, for the board on the [home page](../index.md#a-first-server). The token "
        "counts include name, description and input schema, with `o200k_base`.",
    ]
    parts += [await _mode(name) for name in MODES]
    unlisted = ", ".join(f"`{n}`" for n in ALIASES)
    parts += ["## Callable in every mode, but never listed", f"{unlisted}. Most of these names come from other systems, so "
              "that instructions written for them keep working."]  # fmt: skip
    return "\n\n".join(parts)


async def _mode(name: str) -> str:
    view = await _board().view(Caller(mode=name))
    own = build_listed_meta_tools(MODES_BY_NAME[name], view)  # pyright: ignore[reportArgumentType] a mode
    if not own:
        return f"## `{name}`\n\nNone: this mode lists the tools themselves."
    shown = [f"## `{name}`"]
    for tool in own:
        entry = tool.entry()
        counted = {k: entry[k] for k in ("name", "description", "inputSchema")}
        shown.append(f"### `{tool.name}` ({count_tokens(counted)} tokens)")
        shown += [f"```text\n{entry['description']}\n```", _json(entry["inputSchema"])]
    return "\n\n".join(shown)


async def _exchange(method: str, params: dict[str, Any]) -> str:
    answer = await ToolMethods(_board()).answer(ToolRequest(method, params, Caller()))
    asked = {"method": method, "params": params}
    return f"{_json(asked)}\n\n{_json(answer)}"


def _board() -> Any:
    return runpy.run_path(str(ROOT / "docs_src" / "quickstart.py"))["board"]


def _json(value: Any) -> str:
    return f"```json\n{json.dumps(value, indent=2, ensure_ascii=False)}\n```"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def main() -> int:
    """Rewrite or check all pages."""
    stale = [(p, t) for p, t in pages().items() if not p.exists() or p.read_text("utf-8") != t]
    for path, text in stale:
        if "--check" not in sys.argv:
            path.write_text(text, "utf-8")
        print(path.relative_to(ROOT))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
