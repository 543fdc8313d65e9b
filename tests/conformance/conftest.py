"""Every pair of client and mode plays its scenario once; the tests read what came back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from mcp import StdioServerParameters
from tests.boards import office_board
from tests.conformance.cases import CASES, Case
from tests.conformance.clients import (
    Job,
    Transcript,
    office_process,
    play_python,
    play_typescript,
    served,
)
from tests.conformance.scenarios import scenario

from pegboard.server.serving import build_server


@dataclass
class Stage:
    """Plays scenarios, each once, and keeps what came back."""

    url: str
    played: dict[Case, Transcript] = field(default_factory=dict[Case, Transcript])
    failed: dict[tuple[str, Case | None], str] = field(
        default_factory=dict[tuple[str, Case | None], str]
    )

    def transcript(self, case: Case) -> Transcript:
        if case in self.played:
            return self.played[case]
        # A scenario that could not be played fails its tests at once, not each after a wait.
        key = (case.client, None if case.client.startswith("typescript") else case)
        if key not in self.failed:
            try:
                self._play(case)
                return self.played[case]
            except Exception as exc:
                self.failed[key] = f"{type(exc).__name__}: {exc}"
                raise
        pytest.fail(self.failed[key])

    def _play(self, case: Case) -> None:
        if case.client.startswith("typescript"):
            self._play_typescript(case)
            return
        steps = scenario(case.mode, case.era)
        match case.client:
            case "python-memory":
                target = build_server(office_board(mode=case.mode), environ={})
            case "python-http":
                target = f"{self.url}/mcp/{case.mode}"
            case _:
                target = StdioServerParameters(**office_process(OFFICE_MODE=case.mode))
        self.played[case] = play_python(target, case.era, steps)

    def _play_typescript(self, case: Case) -> None:
        """All cases of this client in one process: starting it is most of the time."""
        alike = [c for c in CASES if c.client == case.client]
        sdk = "1" if case.client.startswith("typescript1") else "2"
        jobs = [Job(self._server(c), c.era, scenario(c.mode, c.era)) for c in alike]
        self.played.update(zip(alike, play_typescript(sdk, jobs), strict=True))

    def _server(self, case: Case) -> dict[str, object]:
        if case.client.endswith("stdio"):
            return office_process(PEGBOARD_MODE=case.mode)
        return {"url": f"{self.url}/mcp/{case.mode}"}


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    with served(office_board().asgi()) as url:
        yield Stage(url)


@pytest.fixture(scope="session", params=CASES, ids=str)
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


@pytest.fixture
def told(stage: Stage, case: Case) -> Transcript:
    """What the client of this case was told, step by step."""
    return stage.transcript(case)
