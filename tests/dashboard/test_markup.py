"""Text on the dashboard: markup of others is text, and nothing in it is invisible."""

from __future__ import annotations

from pegboard.dashboard.markup import tag


def test_hidden_characters_are_shown_and_forms_send_them_back_unchanged() -> None:
    name = "a\u202e<b>\u200b"
    shown = tag("p", name, tag("input", value=name))
    assert shown == (
        "<p>a\\u{202e}&lt;b&gt;\\u{200b}"
        '<input value="a\u202e&lt;b&gt;\u200b"></p>'
    )  # fmt: skip
