"""The real type checker of the sandbox, as the tests of stubs and findings use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

Check = Callable[[str, str | None], str]


@pytest.fixture(scope="session")
def check() -> Iterator[Check]:
    """A function from a program and stubs to the text of the checker; empty where it is content."""
    monty = pytest.importorskip("pydantic_monty")
    with monty.Monty(min_processes=1, max_processes=1) as pool:

        def run(code: str, stubs: str | None = None) -> str:
            session = pool.checkout(
                type_check=True, type_check_stubs=stubs, type_check_format="concise"
            )
            with session:
                try:
                    session.feed_start(code)
                except monty.MontyTypingError as exc:
                    return exc.display()
                except (monty.MontyRuntimeError, monty.MontySyntaxError):
                    return ""  # the checker had nothing to say, and running it is not our subject
                return ""

        yield run
