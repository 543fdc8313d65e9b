import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pegboard.core.search.terms import clean_text, extract_terms, normalize_name, split_identifier


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
    assert split_identifier(identifier) == words


def test_the_ways_to_write_a_name_give_the_same_terms() -> None:
    assert set(extract_terms("create_issue")) == set(extract_terms("creating issues"))
    assert set(extract_terms("create_issue")) <= set(extract_terms("createIssue"))


def test_a_compound_is_found_whole_and_in_parts() -> None:
    assert {"git", "hub", "github"} <= set(extract_terms("GitHub"))


def test_stop_words_give_no_terms() -> None:
    assert extract_terms("what is it that I should do with the") == []


def test_abbreviations_match_their_long_forms() -> None:
    assert set(extract_terms("repository")) <= set(extract_terms("repo"))


def test_scripts_without_spaces_give_pairs_of_characters() -> None:
    assert extract_terms("天气预报") == ["天气", "气预", "预报"]


def test_accents_do_not_matter() -> None:
    assert extract_terms("café") == extract_terms("cafe")


def test_hidden_characters_are_taken_out() -> None:
    assert clean_text("de\u200blete\u202e \U000e0041file\x00\x1b[0m") == "delete file"


def test_styled_letters_become_plain_ones() -> None:
    assert clean_text("𝐝𝐞𝐥𝐞𝐭𝐞 ｆｉｌｅ") == "delete file"


def test_a_person_to_whom_something_is_done_has_the_verb_too() -> None:
    assert set(extract_terms("assign")) <= set(extract_terms("assignee"))
    assert set(extract_terms("attend")) <= set(extract_terms("attendees attendee"))
    assert extract_terms("tree") == ["tree"]
    assert extract_terms("coffee") == ["coffe"]


def test_names_are_compared_without_case_and_separators() -> None:
    assert (
        normalize_name("Create-Issue")
        == normalize_name("createIssue")
        == normalize_name("create issue")
    )


@given(st.text())
def test_any_text_gives_terms_that_can_be_stored(text: str) -> None:
    for term in extract_terms(clean_text(text)):
        assert term
        assert term == term.strip()


@given(st.text())
@example("e\u200b\u0301")
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    once = clean_text(text)
    assert clean_text(once) == once
