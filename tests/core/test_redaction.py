from __future__ import annotations

import base64
import json
import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.redaction import REDACTED, Redactor, is_secret, secret_values

redactor = Redactor()


@pytest.mark.parametrize(
    "name",
    ["password", "API_KEY", "apiKey", "accessToken", "x-api-key", "Authorization", "client_secret",
     "privateKey", "Set-Cookie", "aws_secret_access_key", "github_token"],
)  # fmt: skip
def test_fields_of_these_names_hold_secrets(name: str) -> None:
    assert is_secret(name)
    assert redactor.value({name: "x"}) == {name: REDACTED}


@pytest.mark.parametrize(
    "name", ["max_tokens", "tokens_in", "author", "key", "keyboard", "secretary", "title", ""]
)
def test_fields_of_these_names_do_not(name: str) -> None:
    assert not is_secret(name)
    assert redactor.value({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    "secret",
    [
        "sk-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrst",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "xoxb-123456789012-abcdef",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_well_known_forms_are_recognised_anywhere_in_a_text(secret: str) -> None:
    cleaned = redactor.text(f"before {secret} after")
    assert cleaned == f"before {REDACTED} after"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer [redacted]"),
        ("redis://me:hunter2@host:6379/0", "redis://me:[redacted]@host:6379/0"),
        ("?user=ann&password=hunter2&x=1", "?user=ann&password=[redacted]&x=1"),
        ('{"api_key": "abcdef"}', '{"api_key": "[redacted]"}'),
    ],
)
def test_what_leads_to_a_secret_stays_readable(text: str, cleaned: str) -> None:
    assert redactor.text(text) == cleaned


@pytest.mark.parametrize(
    "text", ["the token budget is 4000", "see http://host:80/a@b", "task-force", "a bearer of news"]
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redactor.text(text) == text


def test_given_secrets_are_redacted_wherever_they_are() -> None:
    told = Redactor(["s3cr3t-long", "s3cr3t", "ab"])
    value = {"a": ["x s3cr3t-long y", {"b": "s3cr3t"}], "c": ("ab",)}
    assert told.value(value) == {"a": ["x [redacted] y", {"b": REDACTED}], "c": ["ab"]}


def test_depth_is_bounded() -> None:
    deep: Any = "end"
    for _ in range(10_000):
        deep = [deep]
    assert "too deep" in str(redactor.value(deep))


def test_a_hostile_text_is_no_trap_for_the_patterns() -> None:
    began = time.process_time()
    redactor.text("-----BEGIN A PRIVATE KEY-----" * 2000 + "eyJ" * 20_000 + "://a:" * 20_000)
    assert time.process_time() - began < 2


plain = st.recursive(
    st.none() | st.integers() | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["id", "size", "items"]), inner, max_size=3)
    ),
    max_leaves=20,
)


@given(plain)
def test_a_value_without_secrets_comes_back_equal(value: Any) -> None:
    assert redactor.value(value) == value


@given(st.text(alphabet="abc12345", min_size=6, max_size=20), st.text(), st.text())
def test_no_known_secret_survives(secret: str, before: str, after: str) -> None:
    assert secret not in Redactor([secret]).text(before + secret + after)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"env": {"DB": "s3cr3t-value"}}, {"s3cr3t-value"}),
        ({"env": {"PASSWORD": "abcd", "PIN": "1234"}}, {"abcd"}),
        ({"env": {"HOME": "/home/ann/data", "NODE_ENV": "production", "LEVEL": "debug"}}, set()),
        ({"headers": {"Authorization": "Bearer tok-1"}}, {"Bearer tok-1", "tok-1"}),
        ({"headers": {"Accept": "application/json"}}, set()),
        (
            {"headers": {"Authorization": "Basic YW5uOnMzY3IzdA=="}},
            {"Basic YW5uOnMzY3IzdA==", "YW5uOnMzY3IzdA==", "ann:s3cr3t", "s3cr3t"},
        ),
        ({"urls": ["redis://u:p%40ss@h/0"]}, {"p%40ss", "p@ss"}),
        ({"urls": ["https://h/x?api_key=k-12&page=2"]}, {"k-12"}),
        ({"urls": ["https://h/mcp/abcdefghijklmnopqrs1/v1"]}, {"abcdefghijklmnopqrs1"}),
        (
            {"args": ["--token", "t-123", "-e", "API_KEY=k-123", "--port", "8080"]},
            {"t-123", "k-123"},
        ),
        ({"args": ["--header", "Authorization: Bearer t-123"]}, {"Bearer t-123", "t-123"}),
        ({"args": ["postgres://u:pw12@h/db"]}, {"pw12"}),
        ({"urls": [None, "http://[", "no address"]}, set()),
    ],
)
def test_the_secrets_of_a_configuration_are_found(given: Any, expected: set[str]) -> None:
    assert secret_values(**given) == expected


def test_a_secret_is_removed_in_the_forms_that_it_travels_in() -> None:
    secret = 'p@ss "word"/+ü'
    told = Redactor([secret])
    forms = [
        secret,
        quote(secret, safe=""),
        base64.b64encode(secret.encode()).decode(),
        json.dumps(secret),
    ]
    for form in forms:
        assert "word" not in told.text(f"<{form}>"), form
        assert REDACTED in told.text(f"<{form}>")


def test_what_is_learned_later_is_removed_too() -> None:
    told = Redactor(["first-secret"])
    told.learn(["second-secret"])
    assert told.text("first-secret second-secret") == f"{REDACTED} {REDACTED}"


def test_a_message_for_a_model_keeps_words_that_only_look_like_names_of_secrets() -> None:
    text = "Unexpected token: function"
    assert redactor.message(text) == text
    assert redactor.text(text) != text
