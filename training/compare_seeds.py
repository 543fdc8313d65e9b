"""The whole search with several versions of the encoder, on the sets that none of them learned from.

    python training/compare_seeds.py --bench DIR WEIGHTS...

Each folder of weights is what `make_models.py` wrote with another seed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from corpus import VALIDATE

from pegboard.adapters.catalog_file import CatalogFile
from pegboard.core.tools import Catalog
from pegboard.embed import bundled_models
from pegboard.embed.live_index import LiveIndex
from pegboard.embed.vectorizer import LocalVectorizer
from pegboard.measure.search_quality import pegboard_ranker, read_queries, score_ranking

COLUMNS = ("recall_1", "recall_5", "recall_10", "hit_5", "ndcg_10")


def figures(bench: Path, name: str, weights: Path) -> np.ndarray:
    """The mean of each column over the queries of one set, in percent."""
    folder = bench / "sets" / name
    live_index = LiveIndex(LocalVectorizer(embedder=bundled_models.encoder(weights)))
    rank = pegboard_ranker(
        live_index.prepare(Catalog(CatalogFile.read(folder / "tools.jsonl").tools))
    )
    rows = [
        score_ranking(rank(q.query), q.relevant) for q in read_queries(folder / "queries.jsonl")
    ]
    return 100 * np.mean([[row[column] for column in COLUMNS] for row in rows], axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("weights", type=Path, nargs="+")
    options = parser.parse_args()
    print(f"{'':40}" + "".join(f"{column:>10}" for column in COLUMNS))
    for weights in options.weights:
        found = {name: figures(options.bench, name, weights) for name in VALIDATE}
        found["mean"] = np.mean(list(found.values()), axis=0)
        for name, row in found.items():
            cells = "".join(f"{value:10.1f}" for value in row)
            print(f"{weights.name + ' ' + name:40}{cells}", flush=True)


if __name__ == "__main__":
    main()
