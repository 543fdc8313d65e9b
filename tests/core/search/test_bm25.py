import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pegboard.core.search.bm25 import (
    CATEGORY,
    DESCRIPTION,
    NAME,
    Postings,
    TermWeights,
    weigh_terms,
)
from pegboard.core.search.searchable_fields import SearchableFields

EMPTY = SearchableFields("", "", "", "", "", "", "")

contents = st.dictionaries(
    st.sampled_from("abcdefgh"),
    st.tuples(st.floats(0.125, 0.875, width=32), st.integers(1, 63)),
    max_size=6,
)


def described(text: str) -> SearchableFields:
    return SearchableFields("thing", "", "", "", text, "", "")


def test_a_term_weighs_more_in_the_name_than_in_the_description_than_in_the_category() -> None:
    name = weigh_terms(SearchableFields("invoice", "", "", "", "", "", ""))["invoic"][0]
    description = weigh_terms(SearchableFields("", "", "", "", "invoice", "", ""))["invoic"][0]
    category = weigh_terms(SearchableFields("", "", "", "invoice", "", "", ""))["invoic"][0]
    assert name > description > category


def test_places_say_where_a_term_stands() -> None:
    found = weigh_terms(SearchableFields("send_mail", "", "", "mail", "Sends a letter", "", ""))
    assert found["mail"][1] == NAME | CATEGORY
    assert found["letter"][1] == DESCRIPTION


def test_repeating_a_word_does_not_pay() -> None:
    honest = weigh_terms(described("Deletes a file from the disk of the machine"))["file"][0]
    stuffed = weigh_terms(described("Deletes a file " + "file " * 400))["file"][0]
    assert stuffed < honest


def test_weights_stay_below_one() -> None:
    for weight, _ in weigh_terms(SearchableFields(*["file"] * 7)).values():
        assert 0 < weight < 1


def test_no_terms_score_nothing() -> None:
    lexical = Postings.build([weigh_terms(EMPTY), weigh_terms(described("file"))]).score([])
    assert lexical.scores.tolist() == [0, 0]
    assert not lexical.named.any()


def test_a_rare_term_counts_more_than_a_common_one() -> None:
    postings = Postings.build(
        [weigh_terms(described("get")) for _ in range(9)] + [weigh_terms(described("invoice"))]
    )
    scores = postings.score(["get", "invoic"]).scores
    assert scores[9] > scores[0]


@given(st.lists(contents, max_size=8), st.lists(contents, max_size=4), st.data())
def test_changed_postings_equal_postings_built_anew(
    before: list[TermWeights], added: list[TermWeights], data: st.DataObject
) -> None:
    stays = data.draw(st.lists(st.booleans(), min_size=len(before), max_size=len(before)))
    kept = [c for c, stay in zip(before, stays, strict=True) if stay]
    after = kept + added
    moved = np.array(
        [sum(stays[:i]) if stay else -1 for i, stay in enumerate(stays)], dtype=np.int32
    )
    news = [(len(kept) + i, content) for i, content in enumerate(added)]
    changed = Postings.build(before).changed(moved, news, len(after))
    fresh = Postings.build(after)
    for term in "abcdefgh":
        np.testing.assert_array_equal(changed.score([term]).scores, fresh.score([term]).scores)
        for tool in range(len(after)):
            assert changed.places_of(term, tool) == fresh.places_of(term, tool)
