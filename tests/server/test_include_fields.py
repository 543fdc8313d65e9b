"""`include_fields` over the wire: on every tool, in every mode, refused where it is nonsense."""

from __future__ import annotations

from typing import Any

import pytest
from tests.boards import office_board
from tests.conformance.clients import Era, play_python
from tests.conformance.scenarios import call

from pegboard.core.options import MODES, ModeName
from pegboard.server.serving import build_server

ERAS: tuple[Era, ...] = ("legacy", "modern")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("asked", [["id", "title"], "id, title"], ids=["list", "text"])
def test_a_direct_call_returns_the_requested_fields(mode: ModeName, era: Era, asked: Any) -> None:
    server = build_server(office_board(mode=mode), environ={})
    told = play_python(server, era, {"call": call("get_issue", id=1, include_fields=asked)})
    expected = {"id": 1, "title": "Door does not open"}
    assert told["call"].ok["structuredContent"] == expected
    assert told["call"].json == expected


@pytest.mark.parametrize("era", ERAS)
def test_omitted_or_empty_is_everything_as_before(era: Era) -> None:
    server = build_server(office_board(mode="proxy"), environ={})
    told = play_python(
        server,
        era,
        {
            "plain": call("get_issue", id=1),
            "empty": call("get_issue", id=1, include_fields=[]),
            "null": call("get_issue", id=1, include_fields=None),
        },
    )
    assert told["empty"].ok == told["null"].ok == told["plain"].ok


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("asked", [5, {"id": True}, [1], ["nonsense"]])
def test_fields_that_make_no_sense_are_refused_before_the_call(era: Era, asked: Any) -> None:
    board = office_board(mode="proxy")
    arguments = {"project": "apollo", "title": "Lamp is dark"}
    told = play_python(
        build_server(board, environ={}),
        era,
        {
            "direct": call("create_issue", include_fields=asked, **arguments),
            "through": call(
                "call_write_tool", name="create_issue", arguments=arguments, include_fields=asked
            ),
            "list": call("list_issues"),
        },
    )
    for key in ("direct", "through"):
        assert told[key].mendable["kind"] in ("invalid_arguments", "invalid_field"), key
    assert len(told["list"].ok["structuredContent"]["result"]) == 1
