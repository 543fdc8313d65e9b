from __future__ import annotations

import logging

import pytest
from tests.observe.samples import finished

from pegboard.core.events import Event
from pegboard.observe.statistics import CombinedObserver


class Heard(list[Event]):
    def record(self, event: Event) -> None:
        self.append(event)


class Broken:
    def record(self, event: Event) -> None:
        raise RuntimeError("no")


def test_each_observer_hears_everything_also_beside_one_that_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, last = Heard(), Heard()
    event = finished()
    with caplog.at_level(logging.ERROR):
        CombinedObserver(first, Broken(), last).record(event)
    assert (first, last) == ([event], [event])
    assert "Broken failed on call.finished" in caplog.text
