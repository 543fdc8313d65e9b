"""The public names: what other programs import, so that a change of it is a decision."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

import pegboard
from pegboard import errors, ports, testing

PUBLIC: dict[ModuleType, str] = {
    pegboard: (
        "AmbiguousName Busy Call CallResult Caller Catalog Category CircuitOpen ConfigError "
        "Example InvalidArguments InvalidField LazyTools LoginRequired Match NotPermitted Outcome "
        "Pegboard PegboardError Policy Rule StoreError Tool ToolDisabled ToolError ToolNotFound "
        "UpstreamError UpstreamTimeout UpstreamUnavailable attach build_server count_tokens "
        "project validate_fields"
    ),
    testing: (
        "FakeClock FakeSource RecordingObserver board_of connect list_tokens listed_costs make_tool"
    ),
}


@pytest.mark.parametrize("module", PUBLIC, ids=lambda module: module.__name__)
def test_the_public_names_are_these(module: ModuleType) -> None:
    assert sorted(module.__all__) == sorted(PUBLIC[module].split())


@pytest.mark.parametrize("module", [pegboard, errors, ports, testing], ids=lambda m: m.__name__)
def test_every_public_name_is_there(module: ModuleType) -> None:
    for name in module.__all__:
        assert getattr(module, name) is not None


def test_every_error_is_public() -> None:
    kinds = {k for k, v in vars(errors).items() if isinstance(v, type) and issubclass(v, Exception)}
    assert kinds == set(errors.__all__)
    assert kinds <= set(pegboard.__all__)


def test_a_name_that_is_loaded_later_is_the_function_itself() -> None:
    """Not the module of that name: `pegboard.attach` must never become one."""
    importlib.import_module("pegboard.attachment")
    importlib.import_module("pegboard.server.serving")
    assert callable(pegboard.attach)
    assert callable(pegboard.build_server)
