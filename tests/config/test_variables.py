"""References mean what the client that wrote them would have made of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.config.documents import KeyPath
from pegboard.config.variables import (
    UnresolvedVariable,
    Variables,
    VariableSyntax,
    expand_variables,
)


def variables(tmp_path: Path = Path("/c")) -> Variables:
    inputs = {"key": {"description": "the key"}, "port": {"default": "8080"}}
    env = {"A": "one", "EMPTY": "", "PEGBOARD_INPUT_API_KEY": "typed"}
    return Variables(env, tmp_path, Path("/w/proj"), Path("/home/me"), inputs)


@pytest.mark.parametrize(
    ("spelling", "text", "meant"),
    [
        ("dollar", "x${A}y${A}", "xoneyone"),
        ("dollar", "${B:-other}", "other"),
        ("dollar", "${B:-}", ""),
        ("dollar", "${EMPTY:-filled}", "filled"),
        ("dollar", "${EMPTY}", ""),
        ("dollar", "${A:-https://h:80/p}", "one"),
        ("dollar", "${B:-https://h:80/p}", "https://h:80/p"),
        ("dollar", "${env:A}", "one"),
        ("dollar", "${env:B:-d}", "d"),
        ("dollar", "$${A}", "${A}"),
        ("dollar", "$A ${1} ${a[0]}", "$A ${1} ${a[0]}"),
        ("dollar", "${workspaceFolder}/x", "/w/proj/x"),
        ("dollar", "${workspaceFolderBasename}", "proj"),
        ("dollar", "${userHome}", "/home/me"),
        ("dollar", "${input:api-key}", "typed"),
        ("dollar", "${input:port}", "8080"),
        ("dollar-bare", "$A-${A}-$B", "one-one-$B"),
        ("braces", "Bearer {env:A} ${A}", "Bearer one ${A}"),
        ("none", "${A} $A {env:A}", "${A} $A {env:A}"),
    ],
)
def test_references_are_replaced(spelling: VariableSyntax, text: str, meant: str) -> None:
    assert variables().expand(text, spelling) == meant


@pytest.mark.parametrize(
    ("spelling", "text", "variable", "says"),
    [
        ("dollar", "a ${B}", "B", "write ${B:-default}"),
        ("dollar", "${env:B}", "B", "is not set"),
        ("braces", "{env:B}", "B", "is not set"),
        ("dollar", "${input:key}", "PEGBOARD_INPUT_KEY", "(the key)"),
        ("dollar", "${command:pick}", "${command:pick}", "can only be resolved by its own client"),
        ("dollar", "${file:none}", "${file:none}", "cannot be read"),
        ("dollar", "${keyring:token}", "${keyring:token}", "${keyring:service/user}"),
    ],
)
def test_a_reference_without_a_value_says_what_to_do(
    spelling: VariableSyntax, text: str, variable: str, says: str
) -> None:
    with pytest.raises(UnresolvedVariable) as caught:
        variables().expand(text, spelling)
    assert caught.value.variable == variable
    assert says in str(caught.value)


def test_files_are_read_from_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text("abc\n")
    assert variables(tmp_path).expand("k={file:key.txt}", "braces") == "k=abc"
    assert variables(tmp_path).expand("${file:key.txt}", "dollar") == "abc"


def test_every_string_of_a_value_is_expanded_and_each_failure_reported() -> None:
    seen: list[tuple[KeyPath, str]] = []
    value = {"args": ["${A}", "${B}"], "env": {"X": "${C}", "N": 5}}
    result = expand_variables(
        value, variables(), "dollar", lambda k, u: seen.append((k, u.variable))
    )
    assert result == {"args": ["one", "${B}"], "env": {"X": "${C}", "N": 5}}
    assert seen == [(("args", 1), "B"), (("env", "X"), "C")]


@given(st.text(alphabet=st.characters(blacklist_characters="${}")))
def test_text_without_references_is_left_alone(text: str) -> None:
    for spelling in ("dollar", "dollar-bare", "braces", "none"):
        assert variables().expand(text, spelling) == text
