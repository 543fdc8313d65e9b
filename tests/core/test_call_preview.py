"""The short copies of arguments and messages for the history of calls."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.call_preview import preview_arguments, preview_message, redact_preview
from pegboard.core.events import CallFinished
from pegboard.core.json import JsonObject
from pegboard.core.redaction import REDACTED, Redactor

_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=80,
)


@given(st.dictionaries(st.text(), _json))
def test_a_preview_is_bounded_and_is_json(arguments: JsonObject) -> None:
    written = json.dumps(preview_arguments(arguments))
    # Each character of a text can take 12 characters in JSON.
    assert len(written) < 40_000


def test_small_arguments_are_copied_whole() -> None:
    arguments = {"project": "WEB", "labels": ["bug", 2, None, True], "nested": {"a": {"b": 1.5}}}
    copy = preview_arguments(arguments)
    assert copy == arguments
    assert copy is not arguments


def test_a_long_text_is_cut_and_a_deep_value_left_out() -> None:
    deep: JsonObject = {"x": 1}
    for _ in range(40):
        deep = {"x": deep}
    copy = preview_arguments({"text": "a" * 10_000, "deep": deep, "number": 10**5000})
    assert copy is not None
    assert len(json.dumps(copy)) < 3_000


def _shown(arguments: JsonObject, message: str = "", *secrets: str) -> str:
    call = CallFinished(
        at=0, id="1", tool="t", duration=0, outcome="failed",
        preview=preview_arguments(arguments), message=preview_message(message),
    )  # fmt: skip
    return json.dumps(redact_preview(call, Redactor(secrets)))


def test_secrets_are_redacted_by_name_form_and_value() -> None:
    shown = _shown(
        {"password": "hunter22", "note": "use ghp_0123456789abcdefghij", "plain": "tiger-9-lily"},
        "401 for tiger-9-lily",
        "tiger-9-lily",
    )
    assert shown.count(REDACTED) == 4
    assert "hunter22" not in shown
    assert "ghp_" not in shown
    assert "tiger" not in shown


def test_a_secret_is_never_cut_into_a_part_that_nobody_recognizes() -> None:
    secret = "tiger-9-lily-" * 4
    for padding in range(0, 2_100, 7):
        shown = _shown({"a": "x" * padding, "b": f"{'y' * (padding % 300)}{secret}"}, "", secret)
        assert "tiger-9-lily-t" not in shown


def test_arguments_that_are_not_an_object_have_no_preview() -> None:
    assert preview_arguments(["a"]) is None
    assert preview_arguments(None) is None
