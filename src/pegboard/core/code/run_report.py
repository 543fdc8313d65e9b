"""The outcome of a program, and how it is reported to the model.

Every answer says first which of three happened: nothing ran, it finished, or it stopped after these
calls. Only calls count: if a program failed before its first call, nothing ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pegboard.core.code.consent import ConsentQuestion
from pegboard.core.code.ledger import CallRecord, count_calls
from pegboard.core.code.python_hints import explain_exception, explain_syntax
from pegboard.core.json import Json, JsonObject

Ran: TypeAlias = Literal["nothing", "finished", "stopped", "waiting"]

_MAX_MESSAGE = 2_000


@dataclass(frozen=True, kw_only=True)
class RunReport:
    """The outcome of one run."""

    id: str
    ran: Ran
    value: Json = None
    message: str = ""
    line: int | None = None
    source: str | None = None
    calls: Sequence[CallRecord] = ()
    after: str | None = None
    """The handle under which the record of a run that stopped is stored."""
    run: str | None = None
    """The handle under which a run that waits for consent is stored."""
    printed: str = ""
    prints_dropped: int = 0
    question: ConsentQuestion | None = None
    """What somebody has to decide, where it waits for that."""
    tokens_inside: int = 0
    """An estimate of the results that the program read and the model did not."""
    kind: str = "program"
    """What stopped the program: an error of its own, a limit, or the sandbox."""
    details: JsonObject = field(default_factory=dict[str, Json])

    @property
    def done(self) -> list[CallRecord]:
        """The calls that took effect."""
        return [call for call in self.calls if call.state == "done"]

    def to_text(self) -> str:
        """The answer for a model, of a run that did not finish."""
        parts = [self._headline()]
        if self.source and self.source.strip():
            parts.append(f"  {self.source.strip()[:200]}")
        if self.ran == "stopped":
            notes: list[str] = []
            if self.done:
                notes.append(f"Done before that: {count_calls(self.done)}.")
            doubtful = [c for c in self.calls if c.state == "unknown" and c.risk != "read"]
            if doubtful:
                calls = count_calls(doubtful)
                notes.append(f"May have happened: {calls}; check before you repeat it.")
            if self.after:
                notes.append(
                    f'Fix the program and pass after="{self.after}": '
                    "completed calls are not repeated."
                )
            parts.append(" ".join(notes))
        if self.printed:
            parts.append(f"Printed:\n{self.printed.rstrip()}")
        return "\n".join(parts)

    @property
    def _message(self) -> str:
        # A question is never cut: consent covers every call that it lists.
        return self.message if self.ran == "waiting" else self.message[:_MAX_MESSAGE]

    def _headline(self) -> str:
        message = self._message
        if self.ran == "nothing":
            where = f" Line {self.line}:" if self.line else ""
            separator = "\n" if message.startswith("line ") else " "
            return f"Nothing ran.{where}{separator}{message}"
        if self.ran == "waiting":
            done = f" Done before: {count_calls(self.done)}." if self.done else ""
            return (
                f"{message}\nWaiting for consent to these calls.{done} Ask the user; if they "
                f'agree, call run_destructive_code with run="{self.run}".'
            )
        at = f" at line {self.line}" if self.line else ""
        return f"Stopped{at}: {message}"

    def to_json(self) -> JsonObject:
        """The same as structured content."""
        shape: JsonObject = {"ran": self.ran}
        if self.line:
            shape["line"] = self.line
        shape["message"] = self._message
        if self.calls:
            names = dict.fromkeys(call.name for call in self.done)
            shape["done"] = [
                {"tool": name, "times": sum(call.name == name for call in self.done)}
                for name in names
            ]
        for key in ("after", "run"):
            if (handle := getattr(self, key)) is not None:
                shape[key] = handle
        return {**shape, **self.details}


def explain_failure(error: str, message: str, program: str) -> str:
    """An exception of a program in words that help to fix it."""
    if error in ("NotImplementedError", "SyntaxError"):
        plain = message.replace("The monty syntax parser", "This Python").replace(" yet", "")
        return explain_syntax(plain, program)
    return explain_exception(error, message)
