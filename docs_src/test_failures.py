"""What a caller gets when a server behind the board does not answer."""

import pytest

from pegboard import CircuitOpen, UpstreamUnavailable
from pegboard.testing import FakeSource, board_of, make_tool

tracker = FakeSource(
    [make_tool("close_issue"), make_tool("count_issues")],
    close_issue=UpstreamUnavailable("The tracker does not answer."),
    count_issues={"open": 3},
)
board = board_of(tracker=tracker)


async def test_a_tool_that_keeps_failing_is_left_alone() -> None:
    for _ in range(5):
        with pytest.raises(UpstreamUnavailable):
            await board.call("close_issue")
    with pytest.raises(CircuitOpen) as refused:
        await board.call("close_issue")
    assert refused.value.details["retry_after"] <= 60
    assert len(tracker.calls) == 5  # the sixth call was not sent
