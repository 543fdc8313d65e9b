from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from tests.dispatch.fakes import make_call

from pegboard.core.calls import CallResult, ToolCall
from pegboard.dispatch.timeout import TimeoutPolicy, timeout
from pegboard.errors import ConfigError, UpstreamTimeout
from pegboard.ports import progress_callback

pytestmark = pytest.mark.anyio


async def hangs(call: ToolCall) -> CallResult:
    await anyio.sleep_forever()
    raise AssertionError


async def test_a_call_that_takes_too_long_is_given_up_with_what_to_do() -> None:
    bounded = timeout(TimeoutPolicy(default=0.01))(hangs)
    with anyio.fail_after(5), pytest.raises(UpstreamTimeout) as caught:
        await bounded(make_call(risk="read"))
    assert caught.value.details == {"tool": "search", "server": "github", "timeout": 0.01}
    assert "within 0.01 s" in caught.value.message
    assert "Try again" in caught.value.message


async def test_a_timeout_of_a_writing_tool_advises_to_check_before_repeating() -> None:
    bounded = timeout(TimeoutPolicy(default=0.01))(hangs)
    with anyio.fail_after(5), pytest.raises(UpstreamTimeout, match="check before you repeat"):
        await bounded(make_call("create_issue", risk="write"))


async def test_a_call_within_its_time_is_left_alone() -> None:
    async def quick(call: ToolCall) -> CallResult:
        return CallResult.text("done")

    assert (await timeout()(quick)(make_call())).output == "done"


def test_the_tools_own_time_comes_before_its_upstreams_and_that_before_the_default() -> None:
    policy = TimeoutPolicy(default=60, upstreams={"github": 10})
    assert policy.seconds(make_call(timeout=3).tool) == 3
    assert policy.seconds(make_call().tool) == 10
    assert policy.seconds(make_call(server="jira").tool) == 60
    assert policy.seconds(make_call(server=None).tool) == 60


async def test_without_any_bound_a_call_may_take_as_long_as_its_caller_waits() -> None:
    bounded = timeout(TimeoutPolicy(default=None))(hangs)
    with anyio.move_on_after(0.01) as scope:
        await bounded(make_call())
    assert scope.cancelled_caught


async def test_cancellation_by_the_caller_is_not_a_timeout() -> None:
    bounded = timeout(TimeoutPolicy(default=60))(hangs)
    with anyio.move_on_after(0.01) as scope:
        await bounded(make_call())
    assert scope.cancelled_caught


async def test_a_timeout_error_of_the_tools_own_passes_as_it_is() -> None:
    async def broken(call: ToolCall) -> CallResult:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        await timeout()(broken)(make_call())


async def deadlines(policy: TimeoutPolicy) -> tuple[float, float]:
    """When a call would have been given up before and after it showed progress."""
    seen: list[float] = []

    async def advances(call: ToolCall) -> CallResult:
        seen.append(anyio.current_effective_deadline())
        await anyio.lowlevel.checkpoint()
        progress_callback()()
        seen.append(anyio.current_effective_deadline())
        return CallResult.text("done")

    await timeout(policy)(advances)(make_call())
    return seen[0], seen[1]


async def test_progress_gives_a_call_its_time_again() -> None:
    before, after = await deadlines(TimeoutPolicy(default=60, longest=None))
    assert after > before
    assert after - anyio.current_time() == pytest.approx(60, abs=1)


async def test_progress_for_ever_is_bounded_too() -> None:
    before, after = await deadlines(TimeoutPolicy(default=60, longest=60))
    assert after == before


async def test_progress_outside_of_a_call_is_ignored() -> None:
    assert progress_callback()() is None


@pytest.mark.parametrize("wrong", [{"default": 0}, {"longest": -1}, {"upstreams": {"x": 0}}])
def test_a_bound_of_no_time_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="positive"):
        TimeoutPolicy(**wrong)  # pyright: ignore[reportArgumentType] one of them is a mapping
