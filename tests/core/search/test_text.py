import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pegboard.core.search.terms import clean, normalize_name, split, terms


@pytest.mark.parametrize(
    ("identifier", "words"),
    [
        ("createIssue", ["create", "issue"]),
        ("create_issue", ["create", "issue"]),
        ("getHTTPResponse2", ["get", "http", "response2"]),
        ("list-s3-buckets", ["list", "s3", "buckets"]),
        ("HTML2PDF", ["html2", "pdf"]),
        ("github.repos/list", ["github", "repos", "list"]),
        ("", []),
    ],
)
def test_identifiers_are_split_into_words(identifier: str, words: list[str]) -> None:
    assert split(identifier) == words


def test_the_ways_to_write_a_name_give_the_same_terms() -> None:
    assert set(terms("create_issue")) == set(terms("creating issues"))
    assert set(terms("create_issue")) <= set(terms("createIssue"))


def test_a_compound_is_found_whole_and_in_parts() -> None:
    assert {"git", "hub", "github"} <= set(terms("GitHub"))


def test_stop_words_give_no_terms() -> None:
    assert terms("what is it that I should do with the") == []


def test_abbreviations_match_their_long_forms() -> None:
    assert set(terms("repository")) <= set(terms("repo"))


def test_scripts_without_spaces_give_pairs_of_characters() -> None:
    assert terms("天气预报") == ["天气", "气预", "预报"]


def test_accents_do_not_matter() -> None:
    assert terms("café") == terms("cafe")


def test_hidden_characters_are_taken_out() -> None:
    assert clean("de\u200blete\u202e \U000e0041file\x00\x1b[0m") == "delete file"


def test_styled_letters_become_plain_ones() -> None:
    assert clean("𝐝𝐞𝐥𝐞𝐭𝐞 ｆｉｌｅ") == "delete file"


def test_names_are_compared_without_case_and_separators() -> None:
    assert (
        normalize_name("Create-Issue")
        == normalize_name("createIssue")
        == normalize_name("create issue")
    )


@given(st.text())
def test_any_text_gives_terms_that_can_be_stored(text: str) -> None:
    for term in terms(clean(text)):
        assert term
        assert term == term.strip()


@given(st.text())
@example("e\u200b\u0301")
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
