"""Teach a smaller encoder to place texts where its teachers place them.

The goal is one unit vector per text: teachers' vectors side by side, rotated and cut to the width of
the student, so that a product of two goals is close to the teachers' mean cosine. The student gets a
linear head, started at the best rotation onto the goals.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
import torch.nn.functional as F
from nets import DEVICE, Encoder, Texts


@dataclass(frozen=True)
class Lesson:
    steps: int = 3000
    rate: float = 3e-4
    batch: int = 512
    warmup: int = 50
    likeness: float = 10.0
    relations: float = 20.0
    ranking: float = 1.0
    temperature: float = 0.05


class Headed(Encoder):
    """An encoder followed by a linear map, as one: the map commutes with the mean over tokens."""

    def __init__(self, body: Encoder, head: torch.Tensor) -> None:
        super().__init__(body.net)
        self.head = torch.nn.Parameter(head.clone())

    def unit(self, pooled: torch.Tensor) -> torch.Tensor:
        return F.normalize(pooled @ self.head, dim=-1)


def combine(parts: list[torch.Tensor], width: int, fit: torch.Tensor) -> torch.Tensor:
    """Teachers' vectors as one: side by side, then the `width` directions that vary most over `fit`."""
    joined = torch.cat([p.float() for p in parts], dim=1) / len(parts) ** 0.5
    if joined.shape[1] == width:
        return F.normalize(joined, dim=-1)
    sample = joined[fit]
    _, _, basis = torch.linalg.svd(sample.T @ sample)
    return F.normalize(joined @ basis[:width].T, dim=-1)


def rotation(source: torch.Tensor, goal: torch.Tensor) -> torch.Tensor:
    """The orthogonal matrix that brings `source` closest to `goal`."""
    left, _, right = torch.linalg.svd(source.T @ goal)
    return left @ right


def pace(step: int, total: int, warmup: int) -> float:
    return min(1, (step + 1) / warmup) * max(0.02, 1 - step / total)


def relational(ours: torch.Tensor, theirs: torch.Tensor, temperature: float) -> torch.Tensor:
    """How differently two similarity matrices rank, self left out."""
    hide = torch.eye(len(ours), device=DEVICE, dtype=torch.bool)
    a = (ours / temperature).masked_fill(hide, -30).log_softmax(-1)
    b = (theirs / temperature).masked_fill(hide, -30).log_softmax(-1)
    return F.kl_div(a, b, log_target=True, reduction="batchmean")


def draws(numbers: np.ndarray, size: int, rng: random.Random) -> Iterator[list[int]]:
    """Batches without end; every text comes once before any comes again."""
    while True:
        order = rng.sample(numbers.tolist(), len(numbers))
        yield from (order[i : i + size] for i in range(0, len(order) - size + 1, size))


class Walk:
    """One run of an optimiser: rate warmed up, then falling to nearly nothing."""

    def __init__(self, model: Encoder, lesson: Lesson) -> None:
        self.model, self.lesson, self.step = model, lesson, 0
        wanted = [p for p in model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(
            wanted, lr=lesson.rate, weight_decay=0.01, fused=DEVICE == "cuda"
        )

    def take(self, loss: torch.Tensor) -> None:
        for group in self.optimiser.param_groups:
            group["lr"] = self.lesson.rate * pace(self.step, self.lesson.steps, self.lesson.warmup)
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimiser.step()
        self.step += 1


def study(
    student: Encoder,
    texts: Texts,
    numbers: np.ndarray,
    goal: torch.Tensor,
    lesson: Lesson,
    seed: int,
    partners: dict[int, Sequence[int]],
) -> Encoder:
    """The student after its lesson over the numbered texts.

    Half of each batch is drawn; the other half are partners (tools near a text by the teachers'
    judgement), so that the similarities within a batch are ones that matter.
    """
    rng = random.Random(seed)
    torch.manual_seed(seed)
    walk = Walk(student, lesson)
    student.train()
    for drawn in islice(draws(numbers, lesson.batch // 2, rng), lesson.steps):
        mates = [int(rng.choice(partners[n])) for n in drawn if n in partners]
        rows = np.array(list(dict.fromkeys(drawn + mates)))
        ours, theirs = student(texts, rows), goal[torch.from_numpy(rows).to(DEVICE)].float()
        near, far = ours @ ours.T, theirs @ theirs.T
        loss = lesson.likeness * (1 - (ours * theirs).sum(-1)).mean()
        loss = loss + lesson.relations * F.mse_loss(near, far)
        walk.take(loss + lesson.ranking * relational(near, far, lesson.temperature))
    return student.eval()


def neighbours(
    goal: torch.Tensor, numbers: np.ndarray, tools: np.ndarray, depth: int = 12
) -> dict[int, Sequence[int]]:
    """For each text the tools that its teachers place nearest."""
    out: dict[int, Sequence[int]] = {}
    near = goal[torch.from_numpy(tools).to(DEVICE)].float()
    for i in range(0, len(numbers), 8192):
        rows = numbers[i : i + 8192]
        scores = goal[torch.from_numpy(rows).to(DEVICE)].float() @ near.T
        best = tools[scores.topk(min(depth, len(tools)), dim=1).indices.cpu().numpy()]
        out.update(zip(rows.tolist(), best.tolist(), strict=True))
    return out
