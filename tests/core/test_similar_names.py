"""Similar names: which known name somebody probably meant."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.similar_names import is_typo, letter_similarity, nearest

KNOWN = ["search_issues", "create_issue", "list_projects", "delete_repository", "max_results"]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("serch_issues", "search_issues"),
        ("issue_create", "create_issue"),
        ("createIssue", "create_issue"),
        ("projects", "list_projects"),
        ("DELETE-REPOSITORY", "delete_repository"),
    ],
)
def test_the_name_that_was_meant_comes_first(name: str, meant: str) -> None:
    assert nearest(name, KNOWN)[0] == meant


def test_a_name_like_none_of_them_gets_no_suggestion() -> None:
    assert nearest("weather", KNOWN) == []
    assert nearest("", KNOWN) == []
    assert nearest("x" * 2_000, KNOWN) == []


def test_of_a_mapping_the_values_are_compared_and_the_keys_returned() -> None:
    assert nearest("creat_issue", {"github.1": "create_issue", "github.2": "log"}) == ["github.1"]


def test_a_typo_is_a_letter_or_two_and_not_a_shared_word() -> None:
    assert is_typo("maxResult", KNOWN)
    assert is_typo("create_isue", KNOWN)
    assert not is_typo("create_branch", KNOWN)


@given(st.text("abc", max_size=12), st.text("abc", max_size=12))
def test_the_similarity_is_that_of_the_longest_common_subsequence(one: str, other: str) -> None:
    lengths = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            grown = lengths[i][j] + 1
            lengths[i + 1][j + 1] = grown if a == b else max(lengths[i][j + 1], lengths[i + 1][j])
    together = len(one) + len(other)
    expected = 2 * lengths[-1][-1] / together if together else 1.0
    assert letter_similarity(one, other) == pytest.approx(expected)


def test_a_hundred_thousand_names_are_compared_within_a_second() -> None:
    many = [f"server{number}_tool_of_{number}" for number in range(100_000)] + ["create_issue"]
    began = time.process_time()
    assert nearest("creat_issue", many) == ["create_issue"]
    assert time.process_time() - began < 1


def test_a_long_name_is_compared_with_many_within_a_second() -> None:
    many = [f"server_create_issue_{number}" for number in range(10_000)]
    began = time.process_time()
    assert nearest("create issue " * 70, many)
    assert time.process_time() - began < 1
