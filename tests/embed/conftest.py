from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from pegboard.core.tools import Catalog, Tool, constant_definition

TOPICS = ("mail", "file", "weather", "issue")


class TopicEmbedder:
    """An embedder that knows four topics and counts what it was asked for."""

    id = "topics/1"
    dimensions = len(TOPICS)

    def __init__(self) -> None:
        self.passages: list[str] = []
        self.asked: list[str] = []

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked.extend(texts)
        return self._vectors(texts)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.passages.extend(texts)
        return self._vectors(texts)

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        counts = np.array([[t.lower().count(topic) + 0.01 for topic in TOPICS] for t in texts])
        return (counts / np.linalg.norm(counts, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def topics() -> TopicEmbedder:
    return TopicEmbedder()


@pytest.fixture
def catalog_of() -> Callable[..., Catalog]:
    """A catalog of tools by name and description."""

    def make(**descriptions: str) -> Catalog:
        return Catalog(
            Tool(name, constant_definition({"type": "object"}), description=text)
            for name, text in descriptions.items()
        )

    return make
