"""What is wrong with a program, found before any of its calls is made.

names     which tools does it name; may it call them
stubs     the types of these tools, as this caller sees them
findings  the checker's, of which only certain ones refuse a program
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pegboard.core.code.diagnostics import Mistake, parse_diagnostics
from pegboard.core.code.program_tools import ProgramTools, describe_tool
from pegboard.core.code.steps import SandboxLimits
from pegboard.core.code.stubs import Stubs, ToolTypes, build_stubs, unwrap_result_schema
from pegboard.core.options import CodeOptions
from pegboard.core.tools import Tool
from pegboard.programs.scope import RunScope

_AWAITS = re.compile(r"\b(?:await|async)\b")
_FENCED = re.compile(r"```\w*+[ \t]*+\n(.*)```", re.DOTALL)
_MAX_SHOWN = 8
RESEND_NOTE = (
    "(Learned from earlier results, which may differ: "
    "send the same program again to run it anyway.)"
)


@dataclass(frozen=True, slots=True)
class PreparedProgram:
    """A program with the tools that it names."""

    source: str
    tools: dict[str, Tool]
    stubs: Stubs
    is_async: bool
    """Whether it awaits; one that never does runs its calls one by one."""
    refused: Mapping[str, str]
    """The tools that it uses and may not call, each with the reason."""

    def find_mistakes(self, findings: str) -> list[Mistake]:
        """The mistakes among what the checker found."""
        return parse_diagnostics(findings, self.source, self.stubs)


def unwrap_source(text: str) -> str:
    """The program in what a model sent, without the code fence and the common indentation."""
    text = text.removeprefix("\ufeff")  # editors on Windows begin files with this mark
    if fenced := _FENCED.fullmatch(text.strip()):
        inside = fenced[1].rstrip(" \t").removesuffix("\n")
        text = f"\n{inside}"  # its lines keep their numbers
    # If a program begins at the margin, an indented line may be part of a string.
    return textwrap.dedent(text) if text.lstrip("\n")[:1] in (" ", "\t") else text


def prepare_program(scope: RunScope, source: str, *, may_write: bool = True) -> PreparedProgram:
    """The tools that a program names, as its caller sees them, and their types.

    Those that it may not call are left out of `tools`: it cannot call them by any means. Where it
    seems to use one, it is in `refused`, with the reason.
    """
    source = unwrap_source(source)
    names = ProgramTools.of(scope.catalog)
    named, refused = names.named_in(source), dict[str, str]()
    if not may_write:
        barred = {name: why for name, tool in named.items() if (why := _refuse(tool, scope))}
        named = {name: tool for name, tool in named.items() if name not in barred}
        used = names.used_in(source) if barred else set[str]()
        refused = {name: why for name, why in barred.items() if name in used}
    is_async = _AWAITS.search(source) is not None
    types: list[ToolTypes] = []
    for name, tool in named.items():
        schema, is_learned = scope.result_schemas(tool)
        if (unwrap_result_schema(schema) or {}).get("type") == "string":
            schema = None  # text that is JSON reaches a program as a parsed value
        types.append(ToolTypes(name, tool.input_schema, schema, is_learned))
    return PreparedProgram(source, named, build_stubs(types, is_async=is_async), is_async, refused)


def build_sandbox_limits(
    options: CodeOptions, *, seed: str = "", now: float | None = None
) -> SandboxLimits:
    """What the sandbox itself enforces."""
    return SandboxLimits(
        compute_time=options.compute_time,
        sleep_time=options.sleep_time,
        memory_bytes=options.memory_bytes,
        recursion=options.recursion,
        max_calls=options.max_calls,
        print_bytes=options.print_bytes,
        seed=seed,
        now=now,
    )


def _refuse(tool: Tool, scope: RunScope) -> str | None:
    """Why a program that only reads may not call a tool; `None` if it may."""
    if tool.risk != "read":
        return tool.risk
    if scope.strict and tool.risk_source == "inferred":
        return "not declared read-only"
    return None


def describe_mistakes(mistakes: Sequence[Mistake], scope: RunScope) -> str:
    """Mistakes as a model reads them, with the signatures that it needs to correct them."""
    names = ProgramTools.of(scope.catalog)
    lines: list[str] = []
    shown: set[str] = set()
    for mistake in mistakes[:_MAX_SHOWN]:
        lines.append(f"line {mistake.line}: {mistake.message}")
        similar: dict[str, Tool] = {}
        if mistake.unknown is not None:
            similar = names.nearest(mistake.unknown)
        elif mistake.tool in names.by_name:
            similar = {mistake.tool: names.by_name[mistake.tool]}
        for name, tool in similar.items():
            if name not in shown:
                shown.add(name)
                lines.append(f"  {describe_tool(name, tool, *scope.result_schemas(tool))}")
    if any(mistake.unknown for mistake in mistakes):
        lines += scope.notes  # a tool may be missing because its server is missing
    if len(mistakes) > _MAX_SHOWN:
        lines.append(f"and {len(mistakes) - _MAX_SHOWN} more")
    return "\n".join(lines)
