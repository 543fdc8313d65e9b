import gc
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from weakref import ref

import numpy as np
import pytest
from numpy.typing import NDArray

from pegboard.core.tools import Catalog
from pegboard.embed.live_index import LiveIndex
from pegboard.embed.vectorizer import PATIENCE, LocalVectorizer

from .conftest import TopicEmbedder

CatalogOf = Callable[..., Catalog]
TOOLS = {
    "alpha": "Sends mail to people.",
    "beta": "Reads a file.",
    "gamma": "Tells the weather.",
}


def test_an_answer_does_not_wait_for_vectors(topics: TopicEmbedder, catalog_of: CatalogOf) -> None:
    index = LiveIndex(LocalVectorizer(embedder=topics)).index(catalog_of(**TOOLS))
    assert index.search("weather")[0].tool.id == "gamma"
    assert topics.passages == []
    assert len(index.tools_without_vector()) == 3


def test_prepare_makes_every_vector_once_and_tells_how_far_it_is(
    topics: TopicEmbedder, catalog_of: CatalogOf
) -> None:
    told: list[tuple[int, int]] = []

    def progress(made: int, of: int) -> None:
        told.append((made, of))

    live_index = LiveIndex(LocalVectorizer(embedder=topics))
    index = live_index.prepare(catalog_of(**TOOLS), progress)
    assert index.tools_without_vector() == []
    assert told[-1] == (3, 3)
    live_index.prepare(index.catalog)
    assert len(topics.passages) == 3


def test_vectors_are_found_again_at_the_next_start(
    topics: TopicEmbedder, catalog_of: CatalogOf, tmp_path: Path
) -> None:
    LiveIndex(LocalVectorizer(tmp_path, topics)).prepare(catalog_of(**TOOLS))
    again = LiveIndex(LocalVectorizer(tmp_path, topics)).index(catalog_of(**TOOLS))
    assert again.tools_without_vector() == []
    assert len(topics.passages) == 3


def test_a_new_tool_is_the_only_one_to_be_embedded(
    topics: TopicEmbedder, catalog_of: CatalogOf
) -> None:
    live_index = LiveIndex(LocalVectorizer(embedder=topics))
    live_index.prepare(catalog_of(**TOOLS))
    topics.passages.clear()
    live_index.prepare(catalog_of(**TOOLS, delta="Creates an issue."))
    assert [p.split(".")[0] for p in topics.passages] == ["delta"]


def test_vectors_are_made_in_the_background(topics: TopicEmbedder, catalog_of: CatalogOf) -> None:
    made = threading.Event()

    class Telling(LocalVectorizer):
        def save(self, keys: Sequence[bytes], vectors: object) -> None:
            super().save(keys, vectors)  # pyright: ignore[reportArgumentType] - passed on as it is
            made.set()

    live_index = LiveIndex(Telling(embedder=topics))
    catalog = catalog_of(**TOOLS)
    live_index.index(catalog)
    live_index.start()
    live_index.start()
    assert made.wait(10)
    live_index.close()
    assert live_index.index(catalog).tools_without_vector() == []


def test_when_all_vectors_are_made_nothing_is_left_of_the_indexes_without_them(
    topics: TopicEmbedder, catalog_of: CatalogOf
) -> None:
    rested = threading.Event()

    class Telling(LocalVectorizer):
        def release_memory(self) -> None:
            super().release_memory()
            rested.set()

    live_index = LiveIndex(Telling(embedder=topics))
    catalog = catalog_of(**TOOLS)
    first = ref(live_index.index(catalog))
    gc.disable()
    try:
        live_index.start()
        assert rested.wait(10)
        assert first() is None
    finally:
        gc.enable()
        live_index.close()
    assert live_index.index(catalog).tools_without_vector() == []


def test_closing_a_finder_ends_its_thread(topics: TopicEmbedder, catalog_of: CatalogOf) -> None:
    before = set(threading.enumerate())
    live_index = LiveIndex(LocalVectorizer(embedder=topics))
    live_index.index(catalog_of(**TOOLS))
    live_index.start()
    live_index.close()
    assert set(threading.enumerate()) <= before


def test_a_finder_with_nothing_to_do_has_no_thread(
    topics: TopicEmbedder, catalog_of: CatalogOf
) -> None:
    before = set(threading.enumerate())
    live_index = LiveIndex(LocalVectorizer(embedder=topics))
    live_index.index(catalog_of(**TOOLS))
    live_index.start()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert set(threading.enumerate()) <= before


def test_the_same_query_is_embedded_once(topics: TopicEmbedder, catalog_of: CatalogOf) -> None:
    index = LiveIndex(LocalVectorizer(embedder=topics)).prepare(catalog_of(**TOOLS))
    for limit in (1, 2, 3):
        index.search("will there be weather", limit=limit)
    assert topics.asked == ["will there be weather"]


def test_an_embedder_that_fails_leaves_an_answer_by_words(
    topics: TopicEmbedder, catalog_of: CatalogOf, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(TopicEmbedder):
        def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise ConnectionError("the service is down")

    index = LiveIndex(LocalVectorizer(embedder=Failing())).prepare(catalog_of(**TOOLS))
    assert index.search("read a file")[0].tool.id == "beta"
    assert "embedder failed" in caplog.text


def test_repeated_searches_start_no_more_threads(
    topics: TopicEmbedder, catalog_of: CatalogOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[threading.Thread] = []
    start = threading.Thread.start

    def counted(thread: threading.Thread) -> None:
        begun.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)
    live_index, catalog = LiveIndex(LocalVectorizer(embedder=topics)), catalog_of(**TOOLS)
    for _ in range(5):
        live_index.start()
        live_index.index(catalog)
        begun[-1].join(10)
    assert len(begun) == 1


def test_making_vectors_waits_while_other_things_are_answered() -> None:
    vectorizer = LocalVectorizer()
    answered = iter(range(1, 5))
    vectorizer.pulse = lambda: next(answered, 4)
    vectorizer.wait_for_idle()
    assert next(answered, None) is None


def test_making_vectors_goes_on_when_answers_never_end() -> None:
    vectorizer = LocalVectorizer()
    vectorizer.pulse = itertools.count(1).__next__
    began = time.monotonic()
    vectorizer.wait_for_idle()
    assert time.monotonic() - began >= PATIENCE


def test_an_embedder_gets_the_query_as_written_and_words_are_compared_in_english(
    topics: TopicEmbedder, catalog_of: CatalogOf
) -> None:
    index = LiveIndex(LocalVectorizer(embedder=topics)).prepare(catalog_of(**TOOLS))
    assert index.search("Zeig mir das Wetter")[0].why == ("description: weather",)
    assert topics.asked == ["Zeig mir das Wetter"]
