"""What a board holds while it runs: tools, categories, loaders, switches."""

from __future__ import annotations

from threading import Barrier, Lock, Thread

import pytest

from pegboard.core.tool_registry import RETRY_AFTER, Registry
from pegboard.core.tools import Tool, constant_definition
from pegboard.errors import AmbiguousName, ConfigError, ToolNotFound


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def tool(name: str, category: str | None = None, **given: object) -> Tool:
    tool_id = f"{category}.{name}" if category else name
    empty = constant_definition({"type": "object"})
    return Tool(name, empty, id=tool_id, category=category, **given)  # type: ignore[arg-type]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(clock: Clock) -> Registry:
    return Registry(clock)


def names(registry: Registry) -> list[str]:
    return [t.id for t in registry.snapshot()]


def test_a_snapshot_is_the_same_until_something_changes(registry: Registry) -> None:
    registry.add(tool("a"))
    first = registry.snapshot()
    assert registry.snapshot() is first
    registry.add(tool("b"))
    assert [t.id for t in first] == ["a"]
    assert names(registry) == ["a", "b"]


def test_a_second_tool_of_one_id_is_refused_and_changes_nothing(registry: Registry) -> None:
    first = registry.add(tool("a", summary="first"))
    with pytest.raises(ConfigError, match="'a' is registered already"):
        registry.add(tool("a", summary="second"))
    assert registry.snapshot().get("a") is first


def test_one_name_in_two_categories_is_two_tools(registry: Registry) -> None:
    registry.add(tool("search", "issues"))
    registry.add(tool("search", "documents"))
    assert [c.name for c in registry.snapshot().categories] == ["documents", "issues"]


@pytest.mark.parametrize("name", ["", " ", " issues", "issues "])
def test_a_category_needs_a_name(registry: Registry, name: str) -> None:
    with pytest.raises(ConfigError, match="A category needs a name"):
        registry.describe_category(name)


def test_a_later_description_does_not_erase_an_earlier_one(registry: Registry) -> None:
    registry.describe_category("issues", "Bugs and tasks")
    registry.describe_category("issues")
    registry.add(tool("a", "issues"))
    assert registry.snapshot().categories[0].description == "Bugs and tasks"


def test_a_tool_or_a_whole_category_is_enabled_and_disabled(registry: Registry) -> None:
    for name in ("a", "b"):
        registry.add(tool(name, "group"))
    registry.add(tool("c"))
    registry.set_enabled("group", False)
    registry.set_enabled("c", False)
    registry.set_enabled("b", True)
    assert [t.name for t in registry.snapshot().enabled] == ["b"]


def test_a_tool_with_the_name_of_a_category_is_disabled_alone(registry: Registry) -> None:
    registry.add(tool("search", "search"))
    registry.add(tool("other", "search"))
    registry.set_enabled("search", False)
    assert [t.name for t in registry.snapshot().enabled] == ["other"]


def test_disabling_an_unknown_tool_suggests_similar_names(registry: Registry) -> None:
    registry.add(tool("create_issue", "issues"))
    registry.add(tool("search", "issues"))
    registry.add(tool("search", "documents"))
    with pytest.raises(ToolNotFound, match="create_issue"):
        registry.set_enabled("create_isue", False)
    with pytest.raises(AmbiguousName):
        registry.set_enabled("search", False)


def test_a_related_tool_may_be_in_a_category_that_has_not_been_loaded(registry: Registry) -> None:
    registry.add(tool("a", related=("later",)))
    with pytest.raises(ConfigError, match="'a' names a related tool that does not exist"):
        registry.check_related()
    registry.add_loader("rest", lambda: [tool("later", "rest")])
    registry.check_related()
    registry.load("rest")
    registry.check_related()


# Loaders -----------------------------------------------------------------------------------------


def test_a_loader_runs_on_first_use_and_once(registry: Registry) -> None:
    runs: list[int] = []

    def loader() -> list[Tool]:
        runs.append(1)
        return [tool("a", "graph")]

    registry.add_loader("graph", loader, "Pictures")
    assert not registry.is_loaded("graph")
    assert registry.unloaded == ("graph",)
    assert names(registry) == []
    assert registry.snapshot().categories[0].description == "Pictures"
    registry.load("graph")
    registry.load("graph")
    assert registry.load_all() == {}
    assert runs == [1]
    assert registry.is_loaded("graph")
    assert names(registry) == ["graph.a"]


def test_a_category_has_one_loader(registry: Registry) -> None:
    registry.add_loader("graph", list)
    with pytest.raises(ConfigError, match="has a loader already"):
        registry.add_loader("graph", list)


def test_asking_whether_an_unknown_category_is_loaded_is_an_error(registry: Registry) -> None:
    registry.describe_category("graphs", "pictures of numbers")
    assert registry.is_loaded("graphs")
    with pytest.raises(ToolNotFound, match=r"Unknown category: 'graph'. Nearest: graphs"):
        registry.is_loaded("graph")


def test_many_threads_run_a_loader_once_and_all_see_its_tools(registry: Registry) -> None:
    runs: list[int] = []
    seen: list[list[str]] = []
    ready, guard = Barrier(8), Lock()

    def loader() -> list[Tool]:
        runs.append(1)
        return [tool(f"t{n}", "graph") for n in range(50)]

    def use() -> None:
        ready.wait()
        registry.load("graph")
        with guard:
            seen.append(names(registry))

    registry.add_loader("graph", loader)
    threads = [Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert runs == [1]
    assert len(seen) == 8
    assert all(len(each) == 50 for each in seen)


def test_loaders_do_not_wait_for_one_another(registry: Registry) -> None:
    """One loader uses another category while it runs, from another thread."""

    def outer() -> list[Tool]:
        helper = Thread(target=registry.load, args=("inner",))
        helper.start()
        helper.join(timeout=10)
        assert not helper.is_alive()
        return [tool("o", "outer")]

    registry.add_loader("outer", outer)
    registry.add_loader("inner", lambda: [tool("i", "inner")])
    registry.load("outer")
    assert names(registry) == ["inner.i", "outer.o"]


def test_a_loader_that_fails_is_reported_and_tried_again_after_a_pause(
    registry: Registry, clock: Clock
) -> None:
    results = iter([OSError("no disk"), None])
    runs: list[float] = []

    def loader() -> list[Tool]:
        runs.append(clock.now)
        if (trouble := next(results)) is not None:
            raise trouble
        return [tool("a", "graph")]

    registry.add(tool("other"))
    registry.add_loader("graph", loader)
    with pytest.raises(ConfigError, match=r"'graph' could not be loaded \(OSError: no disk\)"):
        registry.load("graph")
    clock.now += RETRY_AFTER - 0.1
    assert "no disk" in registry.load_all()["graph"]
    assert runs == [100.0]
    assert not registry.is_loaded("graph")
    assert names(registry) == ["other"]
    clock.now += 0.1
    assert registry.load_all() == {}
    assert names(registry) == ["other", "graph.a"]


def test_a_loader_gives_all_of_its_tools_or_none(registry: Registry) -> None:
    registry.add(tool("b", "graph"))
    registry.add_loader("graph", lambda: [tool("a", "graph"), tool("b", "graph")])
    with pytest.raises(ConfigError, match=r"'graph.b' is registered already"):
        registry.load("graph")
    assert names(registry) == ["graph.b"]


# Change ------------------------------------------------------------------------------------------


def test_listeners_hear_of_every_change_until_they_stop(registry: Registry) -> None:
    heard: list[int] = []
    stop = registry.subscribe(lambda: heard.append(len(registry.snapshot())))
    registry.add(tool("a"))
    registry.set_enabled("a", False)
    stop()
    stop()
    registry.add(tool("b"))
    assert heard == [1, 1]


def test_a_loader_changes_no_list_unless_it_failed_before(registry: Registry, clock: Clock) -> None:
    """MCP 2026-07-28: a list must not vary as a side effect of other requests."""
    heard: list[int] = []
    results = iter([[tool("a", "good")], None, [tool("b", "bad")]])

    def loader() -> list[Tool]:
        given = next(results)
        if given is None:
            raise OSError("gone")
        return given

    registry.add(tool("here"))
    assert registry.constant_snapshot() is None
    registry.add_loader("good", loader)
    registry.add_loader("bad", loader)
    constant_part = registry.constant_snapshot()
    assert constant_part is not None
    registry.subscribe(lambda: heard.append(1))
    registry.load("good")
    assert registry.constant_snapshot() is constant_part
    assert "bad" in registry.load_all()
    assert heard == []
    clock.now += RETRY_AFTER
    registry.load("bad")
    assert heard == [1]  # lists had been made without its tools
    assert [t.id for t in registry.constant_snapshot() or ()] == ["here"]
