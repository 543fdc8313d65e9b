"""Figures of a ranking: the share of right tools among the first k, and nDCG@10."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch


def figures(scores: torch.Tensor, relevant: list[list[int]]) -> np.ndarray:
    """Per query: recall@1, recall@5, recall@10, hit@5, nDCG@10."""
    top = scores.topk(min(10, scores.shape[1])).indices.cpu().numpy()
    out: list[Any] = []
    for row, right in zip(top, relevant, strict=True):
        got = [int(t) in right for t in row]
        ideal = sum(1 / math.log2(i + 2) for i in range(min(10, len(right))))
        gain = sum(g / math.log2(i + 2) for i, g in enumerate(got))
        n = len(right)
        out.append((sum(got[:1]) / n, sum(got[:5]) / n, sum(got) / n, any(got[:5]), gain / ideal))
    return 100 * np.array(out, dtype=float)


def report(label: str, per_set: dict[str, np.ndarray]) -> str:
    """One line: recall@5, hit@5 and nDCG@10 of each set."""
    cells = [
        f"{n[:9]} {m[:, 1].mean():.1f}/{m[:, 3].mean():.1f}/{m[:, 4].mean():.1f}"
        for n, m in per_set.items()
    ]
    return f"{label:28} " + " | ".join(cells)
