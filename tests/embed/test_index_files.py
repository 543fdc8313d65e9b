import hashlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pegboard.core.search import SearchIndex
from pegboard.core.tools import Catalog, Schemas, Tool, constant_definition
from pegboard.embed import disk_storage
from pegboard.embed.disk_storage import FORMAT, SUFFIX, IndexFiles
from pegboard.embed.live_index import LiveIndex
from pegboard.embed.vectorizer import LocalVectorizer

from .conftest import TopicEmbedder

CatalogOf = Callable[..., Catalog]
TOOLS = {
    "alpha": "Sends mail to people.",
    "beta": "Reads a file.",
    "gamma": "Tells the weather.",
}
QUERIES = ("send mail", "weather", "read a file", "nothing of this", "everything")


def found(index: SearchIndex) -> list[list[tuple[str, float, tuple[str, ...]]]]:
    return [[(m.tool.id, m.score, m.why) for m in index.search(q)] for q in QUERIES]


@pytest.fixture
def live_index(topics: TopicEmbedder, tmp_path: Path) -> Callable[[], LiveIndex]:
    """A live_index as a process has it that starts now."""
    return lambda: LiveIndex(LocalVectorizer(tmp_path / "v", topics), IndexFiles(tmp_path / "i"))


def the_file(tmp_path: Path) -> Path:
    (path,) = (tmp_path / "i").iterdir()
    return path


def test_the_second_start_reads_no_schema_and_embeds_no_tool(
    topics: TopicEmbedder, live_index: Callable[[], LiveIndex]
) -> None:
    reads: list[str] = []

    def catalog() -> Catalog:
        def tool(name: str, text: str) -> Tool:
            def schemas() -> Schemas:
                reads.append(name)
                return constant_definition({"type": "object"})()

            return Tool(name, schemas, description=text)

        return Catalog(tool(name, text) for name, text in TOOLS.items())

    first = live_index().prepare(catalog(), source="file")
    assert (len(topics.passages), sorted(set(reads))) == (3, sorted(TOOLS))
    reads.clear()
    again = live_index().index(catalog(), "file")
    assert again.tools_without_vector() == []
    assert found(again) == found(first)
    assert (len(topics.passages), reads) == (3, [])


def test_a_saved_index_is_mapped_and_not_read_into_memory(
    live_index: Callable[[], LiveIndex], catalog_of: CatalogOf
) -> None:
    live_index().prepare(catalog_of(**TOOLS), source="file")
    vectors = live_index().index(catalog_of(**TOOLS), "file").contents.vectors
    assert vectors is not None
    for array in (vectors.rough, vectors.exact.rows, vectors.exact.scales):
        assert not array.flags.owndata
        assert not array.flags.writeable


def test_a_saved_index_can_follow_a_changed_catalog(
    live_index: Callable[[], LiveIndex], catalog_of: CatalogOf, topics: TopicEmbedder
) -> None:
    live_index().prepare(catalog_of(**TOOLS), source="file")
    second = live_index()
    second.index(catalog_of(**TOOLS), "file")
    topics.passages.clear()
    changed = second.prepare(catalog_of(**{**TOOLS, "beta": "Creates an issue."}), source="other")
    assert [p.split(".")[0] for p in topics.passages] == ["beta"]
    assert changed.search("issue")[0].tool.id == "beta"
    assert live_index().index(changed.catalog, "other").tools_without_vector() == []


@pytest.mark.parametrize(
    "other",
    [
        {"description": "Sends letters."},
        {"name": "aleph"},
        {"category": "post"},
        {"server": "post"},
        {"aliases": ("write_to",)},
        {"tags": ("post",)},
        {"title": "Post"},
        {"summary": "Post"},
    ],
    ids=str,
)
def test_an_index_of_other_tools_is_not_taken(
    other: dict[str, Any],
    live_index: Callable[[], LiveIndex],
    topics: TopicEmbedder,
    tmp_path: Path,
) -> None:
    def catalog(**given: Any) -> Catalog:
        about: dict[str, Any] = {"name": "alpha", "description": "Sends mail.", **given}
        return Catalog([Tool(definition=constant_definition({"type": "object"}), **about)])

    live_index().index(catalog(), "file")
    saved, vectorizer = IndexFiles(tmp_path / "i"), LocalVectorizer(embedder=topics)
    assert saved.load(catalog(), "file", vectorizer) is not None
    assert saved.load(catalog(), "another file", vectorizer) is None
    assert saved.load(catalog(**other), "file", vectorizer) is None
    topics.id = "topics/2"
    assert saved.load(catalog(), "file", LocalVectorizer(embedder=topics)) is None


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "cut in the first line": lambda data: data[:40],
    "cut in half": lambda data: data[: len(data) // 2],
    "one byte short": lambda data: data[:-1],
    "another kind of array": lambda data: data.replace(b"<f4", b"<f8", 1),
    "a bit of the table": lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
    "a bit of an array": lambda data: data[:-100] + bytes([data[-100] ^ 128]) + data[-99:],
    "an older format": lambda data: data.replace(b"pegboard-index 3", b"pegboard-index 1", 1),
    "a first line alone": lambda data: b"pegboard-index 3 00000000 9\n",
    "no checksum": lambda data: b"pegboard-index 3 zz 9 \n" + b" " * 100,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_rebuilt(
    damage: Callable[[bytes], bytes],
    live_index: Callable[[], LiveIndex],
    catalog_of: CatalogOf,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    whole = found(live_index().prepare(catalog_of(**TOOLS), source="file"))
    path = the_file(tmp_path)
    data = path.read_bytes()
    path.write_bytes(damage(data))
    assert found(live_index().index(catalog_of(**TOOLS), "file")) == whole
    assert "is rebuilt" in caplog.text
    assert path.read_bytes() == data
    caplog.clear()
    live_index().index(catalog_of(**TOOLS), "file")
    assert caplog.text == ""


def test_an_index_saved_without_vectors_gets_them_at_the_next_start(
    live_index: Callable[[], LiveIndex], catalog_of: CatalogOf, tmp_path: Path
) -> None:
    early = live_index()
    assert early.index(catalog_of(**TOOLS), "file").tools_without_vector()
    early_data = the_file(tmp_path).read_bytes()
    live_index().prepare(catalog_of(**TOOLS), source="file")
    the_file(tmp_path).write_bytes(early_data)  # as if a slower process had written last
    assert live_index().index(catalog_of(**TOOLS), "file").tools_without_vector() == []
    assert the_file(tmp_path).read_bytes() != early_data


def test_vectors_computed_in_the_background_are_saved_with_the_index(
    live_index: Callable[[], LiveIndex],
    catalog_of: CatalogOf,
    topics: TopicEmbedder,
    tmp_path: Path,
) -> None:
    served = live_index()
    served.start()
    served.index(catalog_of(**TOOLS), "file")
    for thread in threading.enumerate():
        if thread.name == "pegboard-vectors":
            thread.join(10)
    assert served.is_saved
    assert the_file(tmp_path).suffix == SUFFIX
    assert live_index().index(catalog_of(**TOOLS), "file").tools_without_vector() == []
    assert len(topics.passages) == 3


def test_a_catalog_that_was_read_again_and_is_the_same_is_not_written_again(
    live_index: Callable[[], LiveIndex], catalog_of: CatalogOf, tmp_path: Path
) -> None:
    one = live_index()
    one.prepare(catalog_of(**TOOLS), source="file")
    before = the_file(tmp_path).stat()
    one.prepare(catalog_of(**TOOLS), source="file")
    after = the_file(tmp_path).stat()
    assert one.is_saved
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_unwritable_folder_is_reported_once_and_only_prevents_saving(
    topics: TopicEmbedder, catalog_of: CatalogOf, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "taken").write_text("a file, not a folder")
    live_index = LiveIndex(LocalVectorizer(embedder=topics), IndexFiles(tmp_path / "taken" / "i"))
    with caplog.at_level(logging.WARNING):
        index = live_index.prepare(catalog_of(**TOOLS), source="file")
    assert index.search("weather")[0].tool.id == "gamma"
    assert not live_index.is_saved
    assert caplog.text.count("cannot be saved") == 1


def test_nothing_is_saved_without_a_hash_of_the_source(
    live_index: Callable[[], LiveIndex], catalog_of: CatalogOf, tmp_path: Path
) -> None:
    one = live_index()
    one.prepare(catalog_of(**TOOLS))
    assert not (tmp_path / "i").exists()
    assert not one.is_saved


def test_an_empty_catalog_needs_no_file(
    live_index: Callable[[], LiveIndex], tmp_path: Path
) -> None:
    one = live_index()
    assert one.prepare(Catalog([]), source="file").search("anything") == []
    assert one.is_saved
    assert not (tmp_path / "i").exists()


def test_the_oldest_files_are_forgotten(
    topics: TopicEmbedder, catalog_of: CatalogOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_storage, "MAX_FILES", 2)
    vectorizer, saved = LocalVectorizer(embedder=topics), IndexFiles(tmp_path)
    for source in "abc":
        saved.save(SearchIndex.build(catalog_of(**TOOLS), vectorizer), source, vectorizer)
    assert len(list(tmp_path.iterdir())) == 2
    monkeypatch.setattr(disk_storage, "MAX_BYTES", 1)
    saved.save(SearchIndex.build(catalog_of(**TOOLS), vectorizer), "d", vectorizer)
    assert len(list(tmp_path.iterdir())) == 1
    assert saved.load(catalog_of(**TOOLS), "d", vectorizer) is not None


def test_a_change_of_what_is_indexed_comes_with_a_new_format() -> None:
    """Files of an older edition must not be taken: when this fails, change `FORMAT` and this."""
    tools = [
        Tool(
            "createIssue",
            constant_definition(
                {"type": "object", "properties": {"title": {"description": "One line"}}}
            ),
            server="tracker",
            category="issues",
            aliases=("file a bug",),
            tags=("work",),
            description="Creates a new issue with running numbers in the repo.",
        ),
        Tool(
            "天气预报", constant_definition({"type": "object"}), description="Wetter: café, größer."
        ),
    ]
    contents = SearchIndex.build(Catalog(tools)).contents
    postings = contents.postings
    said = [
        [(term, postings.places_of(term, tool)) for term in postings.vocabulary]
        for tool in range(len(tools))
    ]
    weights = [round(float(weight), 4) for weight in postings.weights]
    told = hashlib.sha256(repr((contents.keys, said, weights)).encode()).hexdigest()[:16]
    assert (FORMAT, told) == (b"3", "c766281f029c9ce3")
