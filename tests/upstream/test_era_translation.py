"""What the two eras of the protocol spell differently."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.upstream import era_translation

ENVELOPE = era_translation.build_envelope("2026-07-28", {"name": "x"}, {"roots": {}}, "info")
KEYS: Any = st.dictionaries(st.text(min_size=1).filter(lambda k: k not in ENVELOPE), st.integers())


@given(KEYS, KEYS)
def test_a_round_through_both_eras_keeps_all_but_the_envelope(
    params: dict[str, Any], meta: dict[str, Any]
) -> None:
    for own in ("_meta", "inputResponses", "requestState"):
        params.pop(own, None)
    meta.pop("progressToken", None)
    modern = era_translation.to_modern_params(
        {**params, "_meta": {**meta, "progressToken": 1}}, "t", ENVELOPE
    )
    assert modern["_meta"] == {**meta, **ENVELOPE, "progressToken": "t"}
    back = era_translation.to_legacy_params(modern, None)
    assert back == ({**params, "_meta": meta} if meta else params)


def test_a_legacy_server_gets_no_answers_of_the_modern_kind() -> None:
    params = {"name": "x", "inputResponses": {}, "requestState": "s"}
    assert era_translation.to_legacy_params(params, "t") == {
        "name": "x",
        "_meta": {"progressToken": "t"},
    }


def test_only_a_modern_client_reads_that_a_result_is_complete() -> None:
    assert era_translation.translate_result("modern", {"a": 1}) == {
        "a": 1,
        "resultType": "complete",
    }
    assert era_translation.translate_result("legacy", {"a": 1, "resultType": "complete"}) == {
        "a": 1
    }
    asked = {"resultType": "input_required", "inputRequests": {}}
    assert era_translation.translate_result("modern", asked) == asked


def test_only_a_modern_client_reads_which_server_answered() -> None:
    info = {"name": "x", "version": "1"}
    signed: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/serverInfo": info}}
    assert era_translation.translate_result("modern", signed)["_meta"] == signed["_meta"]
    for malformed in ("x", {"name": "x"}, {"name": 1, "version": "1"}):
        signed["_meta"]["io.modelcontextprotocol/serverInfo"] = malformed
        assert "_meta" not in era_translation.translate_result("modern", signed)
    assert era_translation.translate_result("legacy", signed) == {}
    assert era_translation.translate_result("legacy", {"_meta": {**signed["_meta"], "k": 1}}) == {
        "_meta": {"k": 1}
    }


def test_a_modern_client_declares_to_legacy_servers_only_the_input_they_may_request() -> None:
    declared = {
        "roots": {"listChanged": True},
        "elicitation": {"form": {}},
        "extensions": {"x/y": {}},
    }
    assert era_translation.to_legacy_capabilities(declared, "modern") == {
        "roots": {},
        "elicitation": {"form": {}},
    }
    assert era_translation.to_legacy_capabilities(declared, "legacy") == declared


@pytest.mark.parametrize(
    ("threshold", "level", "is_enabled"),
    [
        ("info", "error", True),
        ("error", "info", False),
        ("info", "odd", True),
        (None, "error", False),
    ],
)
def test_log_levels_are_ordered(threshold: str | None, level: str, is_enabled: bool) -> None:
    assert era_translation.is_level_enabled(threshold, level) is is_enabled
