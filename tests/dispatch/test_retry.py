from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dispatch.fakes import OK, Clock, Recorder, Source, make_call, run

from pegboard.core.calls import CallResult
from pegboard.core.events import CallRetried
from pegboard.dispatch.call_events import ObserveOptions, observe
from pegboard.dispatch.retry import RetryPolicy, retry
from pegboard.errors import (
    Busy,
    CircuitOpen,
    ConfigError,
    InvalidArguments,
    UpstreamError,
    UpstreamTimeout,
    UpstreamUnavailable,
)

pytestmark = pytest.mark.anyio

READ = {"readOnlyHint": True}
AWAY = UpstreamUnavailable("gone")
LATE = UpstreamTimeout("late")


class Retrying:
    """A retry layer whose time and chance are the test's."""

    def __init__(self, *answers: Any, chance: float = 1.0, **policy: Any) -> None:
        self.clock = Clock()
        self.source = Source()
        self.source.queue = list(answers)
        self.recorder = Recorder()
        self.handler = retry(
            policy=RetryPolicy(**policy),
            observer=self.recorder,
            random=lambda: chance,
            sleep=self.clock.sleep,
            clock=self.clock,
        )(self.source)

    async def call(self, **about: Any) -> CallResult:
        about.setdefault("annotations", READ)
        return await self.handler(make_call(**about))

    @property
    def attempts(self) -> int:
        return len(self.source.calls)


@pytest.mark.parametrize("error", [AWAY, LATE], ids=["unavailable", "timeout"])
@pytest.mark.parametrize("hints", [READ, {"idempotentHint": True}], ids=str)
async def test_a_repeatable_tool_is_tried_again(error: Exception, hints: dict[str, bool]) -> None:
    retrying = Retrying(error, error, OK)
    assert await retrying.call(annotations=hints) is OK
    assert retrying.attempts == 3


@pytest.mark.parametrize(
    "hints",
    [{}, {"readOnlyHint": False}, {"destructiveHint": False}, {"readOnlyHint": "yes"}],
    ids=str,
)
async def test_a_tool_that_does_not_say_it_is_repeatable_is_called_once(
    hints: dict[str, Any],
) -> None:
    retrying = Retrying(AWAY, OK)
    with pytest.raises(UpstreamUnavailable):
        await retrying.call(annotations=hints)
    assert retrying.attempts == 1


@pytest.mark.parametrize(
    "error",
    [UpstreamError("x"), InvalidArguments("x"), Busy("x"), CircuitOpen("x"), ValueError("x")],
    ids=repr,
)
async def test_other_errors_are_not_worth_a_second_try(error: Exception) -> None:
    retrying = Retrying(error, OK)
    with pytest.raises(type(error)):
        await retrying.call()
    assert retrying.attempts == 1


async def test_an_error_result_is_a_result() -> None:
    failed = CallResult.text("connection refused", is_error=True)
    retrying = Retrying(failed, OK)
    assert await retrying.call() is failed


async def test_the_last_error_comes_out_when_all_attempts_fail() -> None:
    retrying = Retrying(AWAY, AWAY, LATE)
    with pytest.raises(UpstreamTimeout):
        await retrying.call()
    assert retrying.attempts == 3


async def test_pauses_double_and_are_bounded() -> None:
    retrying = Retrying(*[AWAY] * 5, attempts=6, pause=1.0, longest_pause=3.0)
    await retrying.call()
    assert [e.delay for e in retrying.recorder.of(CallRetried)] == [1.0, 2.0, 3.0, 3.0, 3.0]


@given(st.floats(0, 1, exclude_max=True))
def test_a_pause_is_drawn_from_nothing_to_its_bound(chance: float) -> None:
    retrying = Retrying(AWAY, chance=chance, pause=2.0)
    anyio.run(retrying.call)
    (event,) = retrying.recorder.of(CallRetried)
    assert event.delay == chance * 2.0


async def test_an_upstream_that_says_when_to_come_back_is_listened_to() -> None:
    retrying = Retrying(UpstreamUnavailable("starting", retry_after=4), pause=0.1)
    await retrying.call()
    assert [e.delay for e in retrying.recorder.of(CallRetried)] == [4]


async def test_no_attempt_begins_after_the_time_for_all_of_them() -> None:
    retrying = Retrying(*[AWAY] * 9, attempts=9, pause=10.0, longest_pause=10.0, within=25.0)
    with pytest.raises(UpstreamUnavailable):
        await retrying.call()
    assert retrying.attempts == 3


async def test_no_pause_outlasts_the_deadline_of_the_caller() -> None:
    retrying = Retrying(AWAY, OK, pause=2.0)
    with anyio.fail_after(1.0), pytest.raises(UpstreamUnavailable):
        await retrying.call()
    assert retrying.attempts == 1


async def test_cancellation_ends_it_at_once() -> None:
    source = Source()
    source.queue = [AWAY]
    handler = retry(policy=RetryPolicy(pause=600, longest_pause=600, within=9999), random=lambda: 1)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run, handler(source), make_call(annotations=READ))
            await anyio.wait_all_tasks_blocked()
            scope.cancel()
    assert scope.cancelled_caught
    assert len(source.calls) == 1


async def test_the_number_of_attempts_is_recorded_with_the_call() -> None:
    retrying = Retrying(AWAY, AWAY, OK)
    recorder = Recorder()
    await observe(ObserveOptions(observer=recorder))(retrying.handler)(make_call(annotations=READ))
    assert recorder.events[-1].attempts == 3  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"pause": -1.0}, {"within": -1.0}])
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="at least one attempt"):
        RetryPolicy(**wrong)
