"""The language of field paths."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.results.paths import Mark, join_path, parse_fields, parse_path, quote_key
from pegboard.errors import InvalidField

keys = st.text(max_size=12)
steps = st.one_of(keys, st.integers(-99, 99), st.sampled_from(Mark))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("id", ("id",)),
        (" user.name ", ("user", "name")),
        ("items[].id", ("items", Mark.EACH, "id")),
        ("items[*].id", ("items", Mark.EACH, "id")),
        ("[].id", (Mark.EACH, "id")),
        ("users.*.name", ("users", Mark.ANY, "name")),
        ("items[3].body", ("items", 3, "body")),
        ("items[-1]", ("items", -1)),
        ('"a.b".c', ("a.b", "c")),
        (r"a\.b.c", ("a.b", "c")),
        (r"\*.x", ("*", "x")),
        ('"*"', ("*",)),
        ('""', ("",)),
        (r'"say \"hi\""', ('say "hi"',)),
        (r'"a\nb\u00e9".c', ("a\nbé", "c")),
        (r'"a\.b"', ("a.b",)),
        ("full name.größe", ("full name", "größe")),
        ("a-b.$ref.@id", ("a-b", "$ref", "@id")),
    ],
)
def test_a_path_is_its_steps(path: str, expected: tuple[object, ...]):
    assert parse_path(path) == expected


@pytest.mark.parametrize(
    "path",
    ["", "  ", ".a", "a.", "a..b", "a[", "a]", "a[x]", "a[1", "a[]b", '"a', 'a"b"', "a.[0]", "a\\"],
)
def test_a_malformed_path_is_refused_by_name(path: str):
    with pytest.raises(InvalidField) as caught:
        parse_path(path)
    assert caught.value.message.startswith(f"Invalid field: {path if path.strip() else repr('')}")


@pytest.mark.parametrize("path", ["a" * 1_001, ".".join("a" * 65)])
def test_a_path_has_bounds(path: str):
    with pytest.raises(InvalidField, match="at most"):
        parse_path(path)


@given(st.lists(steps, min_size=1, max_size=8))
def test_joined_steps_parse_back(given_steps: list[str | int | Mark]):
    assert parse_path(join_path(given_steps)) == tuple(given_steps)


@given(keys.map(lambda key: key.encode("utf-8", "replace").decode()), st.booleans())
def test_a_key_may_be_quoted_as_json(key: str, ascii_only: bool):
    assert parse_path(f"a.{json.dumps(key, ensure_ascii=ascii_only)}") == ("a", key)


@given(keys)
def test_a_quoted_key_is_one_step_and_survives_a_comma_separated_list(key: str):
    assert parse_path(quote_key(key)) == (key,)
    assert parse_fields(f"id,{quote_key(key)}") == ("id", quote_key(key))


@pytest.mark.parametrize(
    ("sent", "fields"),
    [
        (None, ()),
        ("", ()),
        ([], ()),
        (["id", "user.name"], ("id", "user.name")),
        ("id, user.name", ("id", "user.name")),
        ('["id", "user.name"]', ("id", "user.name")),
        ("[].id, [].name", ("[].id", "[].name")),
        ("[]", ("[]",)),
        ('"a,b",c', ('"a,b"', "c")),
    ],
)
def test_what_callers_send_as_fields_is_understood(sent: object, fields: tuple[str, ...]):
    assert parse_fields(sent) == fields


@pytest.mark.parametrize("sent", [7, {"id": True}, [1], [None]])
def test_what_is_no_list_of_paths_is_refused(sent: object):
    with pytest.raises(InvalidField, match="list of paths is expected"):
        parse_fields(sent)
