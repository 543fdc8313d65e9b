import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.embed.bundled_models import WEIGHTS, tokenizer
from pegboard.embed.encoder import END, START

NAMES = (WEIGHTS / "vocabulary.txt").read_text(encoding="utf-8").split("\n")


def tokens(text: str, limit: int = 128) -> list[str]:
    return [NAMES[number] for number in tokenizer().encode(text, limit)][1:-1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [  # what the base model's own tokenizer gives
        ("create an issue", ["create", "an", "issue"]),
        ("Kubernetes-Pods!", ["ku", "##ber", "##net", "##es", "-", "pods", "!"]),
        ("face the mode", ["face", "the", "mode"]),
        ("Déjà vu", ["de", "##ja", "vu"]),
        ("天气 ok", ["天", "[UNK]", "ok"]),
        ("naïve café №5", ["naive", "cafe", "№", "##5"]),
        ("ΑΣ İstanbul", ["α", "##σ", "istanbul"]),
        ("tab\tand\nline", ["tab", "and", "line"]),
        ("zero\u200bwidth", ["zero", "##wi", "##dt", "##h"]),
        ("x" * 101, ["[UNK]"]),
        ("", []),
    ],
)
def test_words_become_the_pieces_the_model_was_trained_on(text: str, expected: list[str]) -> None:
    assert tokens(text) == expected


def test_the_vocabulary_has_every_token_once() -> None:
    assert len(NAMES) == len(set(NAMES)) == len(np.load(WEIGHTS / "encoder_words.npy"))


def test_a_long_text_is_cut_and_still_ends_properly() -> None:
    numbers = tokenizer().encode("issue " * 1000, 16)
    assert len(numbers) == 16
    assert (numbers[0], numbers[-1]) == (START, END)


@given(st.text(max_size=200), st.integers(2, 64))
def test_any_text_fits_the_limit_and_the_vocabulary(text: str, limit: int) -> None:
    numbers = tokenizer().encode(text, limit)
    assert 2 <= len(numbers) <= limit
    assert all(0 <= number < len(NAMES) for number in numbers)
