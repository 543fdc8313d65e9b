import itertools
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pegboard.core.tools import Catalog
from pegboard.embed.finder import Finder
from pegboard.embed.kept_index import KeptIndexes
from pegboard.embed.local import PATIENCE, QUIET, LocalMeanings

from .conftest import TopicEmbedder

CatalogOf = Callable[..., Catalog]
TOOLS = {
    "alpha": "Sends mail to people.",
    "beta": "Reads a file.",
    "gamma": "Tells the weather.",
}


def test_an_answer_does_not_wait_for_vectors(topics: TopicEmbedder, catalog_of: CatalogOf) -> None:
    index = Finder(LocalMeanings(embedder=topics)).index(catalog_of(**TOOLS))
    assert index.search("weather")[0].tool.id == "gamma"
    assert topics.passages == []
    assert len(index.lacking()) == 3


def test_prepare_makes_every_vector_once_and_tells_how_far_it_is(
    topics: TopicEmbedder, catalog_of: CatalogOf
) -> None:
    told: list[tuple[int, int]] = []

    def progress(made: int, of: int) -> None:
        told.append((made, of))

    finder = Finder(LocalMeanings(embedder=topics))
    index = finder.prepare(catalog_of(**TOOLS), progress)
    assert index.lacking() == []
    assert told[-1] == (3, 3)
    finder.prepare(index.catalog)
    assert len(topics.passages) == 3


def test_vectors_are_found_again_at_the_next_start(
    topics: TopicEmbedder, catalog_of: CatalogOf, tmp_path: Path
) -> None:
    Finder(LocalMeanings(tmp_path, topics)).prepare(catalog_of(**TOOLS))
    again = Finder(LocalMeanings(tmp_path, topics)).index(catalog_of(**TOOLS))
    assert again.lacking() == []
    assert len(topics.passages) == 3


def test_a_new_tool_is_the_only_one_to_be_embedded(
    topics: TopicEmbedder, catalog_of: CatalogOf
) -> None:
    finder = Finder(LocalMeanings(embedder=topics))
    finder.prepare(catalog_of(**TOOLS))
    topics.passages.clear()
    finder.prepare(catalog_of(**TOOLS, delta="Creates an issue."))
    assert [p.split(".")[0] for p in topics.passages] == ["delta"]


def test_vectors_are_made_in_the_background(topics: TopicEmbedder, catalog_of: CatalogOf) -> None:
    made = threading.Event()

    class Telling(LocalMeanings):
        def keep(self, keys: Sequence[bytes], vectors: object) -> None:
            super().keep(keys, vectors)  # pyright: ignore[reportArgumentType] - passed on as it is
            made.set()

    finder = Finder(Telling(embedder=topics))
    catalog = catalog_of(**TOOLS)
    finder.index(catalog)
    finder.start()
    finder.start()
    assert made.wait(10)
    finder.close()
    assert finder.index(catalog).lacking() == []


def test_closing_a_finder_ends_its_thread(topics: TopicEmbedder, catalog_of: CatalogOf) -> None:
    before = set(threading.enumerate())
    finder = Finder(LocalMeanings(embedder=topics))
    finder.index(catalog_of(**TOOLS))
    finder.start()
    finder.close()
    assert set(threading.enumerate()) <= before


def test_a_finder_with_nothing_to_do_has_no_thread(
    topics: TopicEmbedder, catalog_of: CatalogOf
) -> None:
    before = set(threading.enumerate())
    finder = Finder(LocalMeanings(embedder=topics))
    finder.index(catalog_of(**TOOLS))
    finder.start()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
    assert set(threading.enumerate()) <= before


def test_the_same_query_is_embedded_once(topics: TopicEmbedder, catalog_of: CatalogOf) -> None:
    index = Finder(LocalMeanings(embedder=topics)).prepare(catalog_of(**TOOLS))
    for limit in (1, 2, 3):
        index.search("will there be weather", limit=limit)
    assert topics.asked == ["will there be weather"]


def test_an_embedder_that_fails_leaves_an_answer_by_words(
    topics: TopicEmbedder, catalog_of: CatalogOf, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(TopicEmbedder):
        def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
            raise ConnectionError("the service is down")

    index = Finder(LocalMeanings(embedder=Failing())).prepare(catalog_of(**TOOLS))
    assert index.search("read a file")[0].tool.id == "beta"
    assert "embedder failed" in caplog.text


def test_a_kept_index_is_loaded_without_reading_tools(
    topics: TopicEmbedder, catalog_of: CatalogOf, tmp_path: Path
) -> None:
    def finder() -> Finder:
        return Finder(LocalMeanings(tmp_path / "v", topics), KeptIndexes(tmp_path / "i"))

    first = finder().index(catalog_of(**TOOLS), "fingerprint")
    again = finder().index(catalog_of(**TOOLS), "fingerprint")
    for query in ("send mail", "weather", "nothing of this"):
        assert [(m.tool.id, m.score) for m in again.search(query)] == [
            (m.tool.id, m.score) for m in first.search(query)
        ]


def test_a_kept_index_of_other_content_is_not_taken(
    topics: TopicEmbedder, catalog_of: CatalogOf, tmp_path: Path
) -> None:
    kept = KeptIndexes(tmp_path)
    Finder(LocalMeanings(embedder=topics), kept).index(catalog_of(**TOOLS), "one")
    other = catalog_of(only="Creates an issue.")
    assert kept.load(other, "one", LocalMeanings(embedder=topics)) is None
    assert kept.load(other, "two", LocalMeanings(embedder=topics)) is None


def test_a_broken_kept_index_is_made_again(
    topics: TopicEmbedder,
    catalog_of: CatalogOf,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def index() -> object:
        finder = Finder(LocalMeanings(embedder=topics), KeptIndexes(tmp_path))
        return finder.index(catalog_of(**TOOLS), "x").search("weather")[0].tool.id

    index()
    next(tmp_path.glob("*.npz")).write_bytes(b"PK\x03\x04 broken")
    assert index() == "gamma"
    assert "cannot be read" in caplog.text


def test_making_vectors_waits_while_other_things_are_answered() -> None:
    meanings = LocalMeanings()
    answered = iter(range(1, 5))
    meanings.pulse = lambda: next(answered, 4)
    meanings.give_way()
    assert next(answered, None) is None
    began = time.monotonic()
    meanings.give_way()
    assert time.monotonic() - began < QUIET


def test_making_vectors_goes_on_when_answers_never_end() -> None:
    meanings = LocalMeanings()
    meanings.pulse = itertools.count(1).__next__
    began = time.monotonic()
    meanings.give_way()
    assert PATIENCE <= time.monotonic() - began < 10 * PATIENCE
