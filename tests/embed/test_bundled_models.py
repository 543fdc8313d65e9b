import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.embed import bundled_models

ODD_TEXTS = ["", "   ", "\x00\x1f", "🦄🦄🦄", "天气预报", "a" * 100_000, "\u202e\u200b", "..*[]()"]


def test_the_encoder_places_a_request_near_the_tool_that_answers_it() -> None:
    tools = bundled_models.encoder().documents(
        [
            "gmail send message. Sends a message with Gmail. (to, subject, body)",
            "weather get forecast. Forecast for a place. (place)",
            "git list commits. Commits of a branch. (branch)",
        ]
    )
    requests = bundled_models.encoder().queries(
        ["write to my boss that I am late", "do I need an umbrella", "what changed in the code"]
    )
    assert (requests @ tools.T).argmax(axis=1).tolist() == [0, 1, 2]


def test_narrow_vectors_and_a_view_give_the_cosine() -> None:
    static = bundled_models.static()
    query = bundled_models.encoder().queries(["weather tomorrow"])[0]
    texts = ["get forecast. Forecast for a place.", "send message. Sends a message."]
    np.testing.assert_allclose(
        static.narrow_vectors(texts) @ static.narrow_query(query),
        static.documents(texts) @ query,
        atol=1e-4,
    )


@pytest.mark.parametrize(
    "model", [bundled_models.encoder, bundled_models.static], ids=["encoder", "static"]
)
@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_have_unit_vectors(model: type, text: str) -> None:
    vectors = model().documents([text])
    assert vectors.shape == (1, bundled_models.DIMENSIONS)
    np.testing.assert_allclose(np.linalg.norm(vectors), 1, atol=1e-3)


@given(st.lists(st.text(max_size=60), max_size=3))
@settings(max_examples=20, deadline=None)
def test_a_vector_does_not_depend_on_its_neighbours(texts: list[str]) -> None:
    together = bundled_models.encoder().documents(texts)
    assert together.shape == (len(texts), bundled_models.DIMENSIONS)
    for row, text in zip(together, texts, strict=True):
        np.testing.assert_allclose(row, bundled_models.encoder().documents([text])[0], atol=1e-5)


def test_the_weights_fit_into_the_room_they_were_given() -> None:
    assert sum(path.stat().st_size for path in bundled_models.WEIGHTS.iterdir()) < 30_000_000
