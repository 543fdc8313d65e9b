"""A run that waits for consent, as it is stored: any replica can go on with it.

What is stored is the paused program itself, the answers that it has not been given yet, the calls
that were made, and the question. The bytes of the program come from our own sandbox and go back to
the same version of it; they are never taken from a client.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from pegboard.core.code.consent import ConsentQuestion
from pegboard.core.code.ledger import Ledger
from pegboard.core.code.program_tools import ProgramTools
from pegboard.core.code.steps import Answer, Raised, Returned
from pegboard.core.json import Json, JsonObject
from pegboard.core.tools import Catalog, Tool
from pegboard.programs.scope import ConsentChannel


@dataclass(frozen=True, kw_only=True)
class SuspendedRun:
    """Everything that a run needs to go on."""

    id: str
    program: str
    blob: bytes
    version: str
    names: Mapping[str, str]
    """The tools that it names: the name in the program, the digest of id and definition."""
    is_async: bool
    settled: Mapping[int, Answer]
    ledger: Ledger
    question: ConsentQuestion
    channel: ConsentChannel
    printed: str = ""

    def to_json(self) -> JsonObject:
        """As it is stored."""
        return {
            "id": self.id,
            "program": self.program,
            "blob": base64.b64encode(self.blob).decode(),
            "version": self.version,
            "names": dict(self.names),
            "is_async": self.is_async,
            "settled": {str(number): _answer_to_json(a) for number, a in self.settled.items()},
            "ledger": self.ledger.save(),
            "question": self.question.to_json(),
            "channel": self.channel,
            "printed": self.printed,
        }

    @classmethod
    def from_json(cls, stored: JsonObject) -> SuspendedRun:
        """From what `to_json` gave."""
        return cls(
            id=stored["id"],
            program=stored["program"],
            blob=base64.b64decode(stored["blob"]),
            version=stored["version"],
            names=stored["names"],
            is_async=stored["is_async"],
            settled={int(key): _answer_from_json(a) for key, a in stored["settled"].items()},
            ledger=Ledger.load(stored["ledger"]),
            question=ConsentQuestion.from_json(stored["question"]),
            channel=stored["channel"],
            printed=stored["printed"],
        )

    def find_tools(self, catalog: Catalog) -> dict[str, Tool] | None:
        """The tools that it names; `None` if one has changed, or is not there for this caller."""
        known = ProgramTools.of(catalog).by_name
        tools = {name: known[name] for name in self.names if name in known}
        return tools if identify_tools(tools) == self.names else None


def identify_tools(tools: Mapping[str, Tool]) -> dict[str, str]:
    """What tells whether tools are still the same: their ids and definitions."""
    return {name: f"{tool.id} {tool.digest} {tool.risk}" for name, tool in tools.items()}


def _answer_to_json(answer: Answer) -> JsonObject:
    if isinstance(answer, Returned):
        return {"value": answer.value}
    return {"error": answer.type, "message": answer.message}


def _answer_from_json(stored: Mapping[str, Json]) -> Answer:
    if "error" in stored:
        return Raised(stored["error"], stored["message"])
    return Returned(stored["value"])
