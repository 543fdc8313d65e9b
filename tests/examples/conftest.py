"""The worlds of the example servers, built once and reset before each test."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime

import pytest
from tests.examples.world import Caller, Clock, TrackerWorld, World

from examples import memory
from examples.tracker import Tracker, board_for, seed


@pytest.fixture(scope="session")
def tracker_world() -> Generator[TrackerWorld]:
    clock = Clock(datetime(2026, 3, 9, 8, tzinfo=UTC))  # the Monday after the demo's story
    tracker = Tracker.open(":memory:", now=clock)
    seed(tracker)
    world = TrackerWorld(tracker, clock, lambda who: board_for(tracker.acting_as(who)))
    yield world
    world.close()


@pytest.fixture
def world(tracker_world: TrackerWorld) -> TrackerWorld:
    """The tracker with its demo data, on Monday 2026-03-09 at eight."""
    tracker_world.reset()
    return tracker_world


@pytest.fixture(scope="session")
def memory_world() -> Generator[World]:
    clock = Clock(datetime(2026, 2, 20, 8, tzinfo=UTC))
    database = memory.open_memory(now=clock)
    memory.seed(database)
    world = World(database, clock)
    yield world
    world.close()


@pytest.fixture
def remembered(memory_world: World) -> World:
    memory_world.reset()
    return memory_world


@pytest.fixture(scope="session")
def _recall(memory_world: World) -> Caller:
    return Caller(memory.board_for(memory_world.database))


@pytest.fixture
def recall(remembered: World, _recall: Caller) -> Caller:
    """Calls tools of the memory with its demo episodes, on 2026-02-20 at eight."""
    return _recall
