"""Your own embedder: any class with these two methods."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pegboard import Pegboard


class Trigrams:
    """Compares texts by groups of three letters: tolerates typos, but ignores meaning."""

    id = "trigrams/1"  # vectors are cached under this id: change it when they change
    dimensions = 512

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.documents(texts)

    def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for at in range(len(text) - 2):
                piece = text[at : at + 3].lower()
                row[sum(ord(c) * 31**n for n, c in enumerate(piece)) % self.dimensions] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


board = Pegboard("weather", embedder=Trigrams())


@board.tool
def forecast(city: str) -> str:
    """Get tomorrow's weather forecast."""
    return f"It will be fine in {city}."


@board.tool
def book_table(restaurant: str) -> str:
    """Reserve a table for dinner."""
    return restaurant


def main() -> None:
    board.prepare()
    assert board.search("forcast of the wheather")[0].tool.name == "forecast"


if __name__ == "__main__":
    main()
