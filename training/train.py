"""Fine-tune an encoder on requests and the tools that answer them.

InfoNCE over pairs of one catalog, with the model's own near misses as hard negatives, mined anew each
epoch. Near-duplicates of the right tool and other right tools of the same request count as neither.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from nets import DEVICE, Encoder, Texts

from measure import figures

DUPLICATE = 0.93


@dataclass(frozen=True)
class Recipe:
    epochs: int = 5
    rate: float = 7e-5
    batch: int = 192
    temperature: float = 0.05
    negatives: int = 1
    smoothing: float = 0.05
    depth: int = 20
    warmup: int = 50
    decay: float = 0.01


class Set:
    """One labelled set as numbers into `Texts`."""

    def __init__(self, entry: dict[str, Any], texts: Texts) -> None:
        self.name: str = entry["name"]
        self.tools = texts.numbers(entry["tools"])
        self.pairs = [
            (texts.number[q], t, frozenset(right).union(*neither))
            for q, right, *neither in entry["train"]
            for t in right
        ]
        """Request, tool, and the tools that are no mistake for the request, this one included."""
        self.right_rows = np.array(
            [i for i, p in enumerate(self.pairs) for _ in p[2]], dtype=np.int64
        )
        self.right = np.array([t for p in self.pairs for t in p[2]], dtype=np.int64)
        self.held = texts.numbers([q for q, *_ in entry["held"]])
        self.relevant = [right for _, right, *_ in entry["held"]]


def all_texts(corpus: dict[str, Any]) -> list[str]:
    found: list[str] = list(corpus["sentences"])
    for s in corpus["sets"]:
        found += s["tools"] + [q for q, *_ in s["train"]] + [q for q, *_ in s["held"]]
    return found


def near_misses(
    model: Encoder, texts: Texts, data: Set, depth: int
) -> tuple[np.ndarray, torch.Tensor]:
    """For each pair the best wrong tools; and which tools are duplicates of one another."""
    tools = model.vectors(texts, data.tools)
    queries = model.vectors(texts, np.array([p[0] for p in data.pairs]))
    twins = tools @ tools.T > DUPLICATE
    scores = queries @ tools.T
    gold = torch.tensor([p[1] for p in data.pairs], device=DEVICE)
    scores[twins[gold]] = -9
    scores[
        torch.from_numpy(data.right_rows).to(DEVICE), torch.from_numpy(data.right).to(DEVICE)
    ] = -9
    return scores.topk(min(depth, len(data.tools) - 1), dim=1).indices.cpu().numpy(), twins


def batches(sets: list[Set], size: int, rng: random.Random) -> list[tuple[int, list[int]]]:
    out: list[tuple[int, list[int]]] = []
    for at, data in enumerate(sets):
        order = list(range(len(data.pairs)))
        rng.shuffle(order)
        out += [(at, order[i : i + size]) for i in range(0, len(order) - 16, size)]
    rng.shuffle(out)
    return out


def contrast(
    model: Encoder,
    texts: Texts,
    data: Set,
    rows: list[int],
    hard: np.ndarray,
    twins: torch.Tensor,
    recipe: Recipe,
    rng: random.Random,
) -> torch.Tensor:
    """The loss of one batch."""
    gold = [data.pairs[i][1] for i in rows]
    wrong = [
        int(t)
        for i in rows
        for t in rng.sample(list(hard[i]), min(recipe.negatives, hard.shape[1]))
    ]
    tools = list(dict.fromkeys(gold + wrong))
    at = {t: k for k, t in enumerate(tools)}
    queries = model(texts, np.array([data.pairs[i][0] for i in rows]))
    vectors = model(texts, data.tools[tools])
    target = torch.tensor([at[g] for g in gold], device=DEVICE)
    logits = queries @ vectors.T / recipe.temperature
    also_right = np.zeros(logits.shape, dtype=bool)
    for row, i in enumerate(rows):
        for right in data.pairs[i][2]:
            if right in at:
                also_right[row, at[right]] = True
    ignore = twins[torch.tensor(gold, device=DEVICE)][:, torch.tensor(tools, device=DEVICE)]
    ignore = ignore | torch.from_numpy(also_right).to(DEVICE)
    ignore[torch.arange(len(rows), device=DEVICE), target] = False
    logits = logits.masked_fill(ignore, -30.0)
    return F.cross_entropy(logits, target, label_smoothing=recipe.smoothing)


def fine_tune(model: Encoder, texts: Texts, sets: list[Set], recipe: Recipe, seed: int) -> Encoder:
    """The model after its epochs."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    sets = [s for s in sets if s.pairs]
    optimiser = torch.optim.AdamW(
        [p for p in model.parameters() if p.requires_grad],
        lr=recipe.rate,
        weight_decay=recipe.decay,
        fused=DEVICE == "cuda",
    )
    total = recipe.epochs * sum(len(s.pairs) // recipe.batch + 1 for s in sets)
    step = 0
    for _ in range(recipe.epochs):
        mined = [near_misses(model, texts, s, recipe.depth) for s in sets]
        model.train()
        for at, rows in batches(sets, recipe.batch, rng):
            pace = min(1, (step + 1) / recipe.warmup) * max(0.02, 1 - step / total)
            for group in optimiser.param_groups:
                group["lr"] = recipe.rate * pace
            loss = contrast(model, texts, sets[at], rows, *mined[at], recipe, rng)
            optimiser.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            step += 1
    return model.eval()


def evaluate(
    queries: Encoder, texts: Texts, sets: list[Set], tools: Encoder | None = None
) -> dict[str, np.ndarray]:
    """Figures of dense ranking alone on the held-back queries of each set."""
    out: dict[str, np.ndarray] = {}
    for s in sets:
        scores = queries.vectors(texts, s.held) @ (tools or queries).vectors(texts, s.tools).T
        out[s.name] = figures(scores, [list(r) for r in s.relevant])
    return out
