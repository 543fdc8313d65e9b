"""Make the models that ship, from their base models and a corpus: every stage, with its seeds.

    python training/make_models.py --corpus corpus.json.gz --mpnet DIR --minilm DIR --potion DIR \
        --work DIR --out src/pegboard/embed/weights [--seed 0] [--quick]

`--mpnet`, `--minilm` and `--potion` hold `config.json`, `tokenizer.json` and `model.safetensors` of
all-mpnet-base-v2, all-MiniLM-L6-v2 and potion-base-8M, as published. The package must be importable.
A whole run took 496 s on one H200. A stage whose file is in `--work` already is not done again, so a run
that was broken off goes on; give an empty folder for another corpus or other base models.

`--quick` goes through all stages in a few steps, to see that they work, and makes nothing good; on a CPU
give it the small base as the teacher too (`--mpnet` the same folder as `--minilm`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from distil import Headed, Lesson, combine, neighbours, rotation, study
from nets import DEVICE, Encoder, Static, Texts, load_corpus
from polish import polished
from quantise import eight_bit_tensors, rounded
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from train import Recipe, Set, all_texts, evaluate, fine_tune

from measure import report

TEACHERS = (Recipe(epochs=4, rate=5e-5, negatives=2), Recipe(epochs=4, rate=4e-5, negatives=2))
"""Each is taught with its own number as the seed."""

STUDENT = Lesson(steps=4000, rate=3e-4, batch=512)
STATIC = Lesson(steps=2500, rate=3e-3, batch=512)
WIDTH, TABLE_RANK, INNER_WIDTH, STATIC_WIDTH = 384, 256, 1536, 128
QUICK = {"steps": 3, "batch": 32, "warmup": 2}
STARTED = time.monotonic()


@dataclass
class Work:
    """What a run was given, and the texts that all its stages share."""

    corpus: dict[str, Any]
    minilm: Path
    folder: Path
    seed: int
    quick: bool

    @cached_property
    def texts(self) -> Texts:
        return self.tokenised(self.minilm)

    @cached_property
    def sets(self) -> list[Set]:
        return [Set(entry, self.texts) for entry in self.corpus["sets"]]

    @cached_property
    def tools(self) -> np.ndarray:
        return np.unique(np.concatenate([s.tools for s in self.sets if s.pairs]))

    @cached_property
    def queries(self) -> np.ndarray:
        return np.unique([pair[0] for s in self.sets for pair in s.pairs])

    @cached_property
    def loose(self) -> np.ndarray:
        return self.texts.numbers(self.corpus["sentences"])

    @cached_property
    def labelled(self) -> np.ndarray:
        return np.concatenate([self.tools, self.queries])

    def tokenised(self, base: Path) -> Texts:
        tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
        return Texts(all_texts(self.corpus), tokenizer)

    def lesson(self, lesson: Lesson) -> Lesson:
        return replace(lesson, **QUICK) if self.quick else lesson


def say(*words: object) -> None:
    """Print with the seconds since the start."""
    print(f"[{time.monotonic() - STARTED:4.0f} s]", *words, flush=True)


def keep(tensors: dict[str, torch.Tensor], path: Path) -> None:
    """Write a stage's file whole or not at all: whatever is there is taken for finished."""
    part = path.with_suffix(".part")
    save_file({name: value.cpu().contiguous() for name, value in tensors.items()}, part)
    part.replace(path)
    say("wrote", path.name)


def rows(vectors: torch.Tensor, numbers: np.ndarray) -> torch.Tensor:
    return vectors[torch.from_numpy(numbers).to(DEVICE)].float()


def teach(work: Work, mpnet: Path, number: int, recipe: Recipe) -> torch.Tensor:
    """Where a fine-tuned teacher places every text; kept in the folder of the run."""
    path = work.folder / f"goal_{number}.safetensors"
    if not path.exists():
        texts = work.tokenised(mpnet)
        sets = [Set(entry, texts) for entry in work.corpus["sets"]]
        if work.quick:
            recipe = replace(recipe, epochs=1, batch=16, warmup=2)
        model = fine_tune(Encoder.load(mpnet), texts, sets, recipe, number)
        say(report(f"teacher {number}", evaluate(model, texts, sets)))
        vectors = model.vectors(texts, np.arange(len(texts.number))).half()
        keep({"goal": vectors}, path)
    goal = load_file(path)["goal"].to(DEVICE)
    if len(goal) != len(work.texts.number):
        raise SystemExit(f"{path} is of another corpus: give an empty --work.")
    return goal


def goals(work: Work, mpnet: Path) -> torch.Tensor:
    """One vector per text, from all teachers together."""
    parts = [teach(work, mpnet, number, recipe) for number, recipe in enumerate(TEACHERS)]
    return combine(parts, WIDTH, torch.from_numpy(work.labelled).to(DEVICE))


def lessons(work: Work, goal: torch.Tensor) -> tuple[np.ndarray, dict[int, Sequence[int]]]:
    """The texts to study, requests more often than others, and the tools near each."""
    texts = np.concatenate([np.tile(work.queries, 3), work.loose, np.tile(work.tools, 2)])
    asked = np.unique(np.concatenate([work.queries, work.loose]))
    return texts, neighbours(goal, asked, work.tools)


def make_encoder(work: Work, goal: torch.Tensor) -> Path:
    """The student's file: a narrowed MiniLM that places texts as the teachers do.

    In floats: what the phrases change is less than a step of eight bits, and would be lost in rounding if
    they began from rounded numbers.
    """
    path = work.folder / f"encoder_{work.seed}.safetensors"
    if not path.exists():
        sample = work.labelled[:: 1 if work.quick else 8]
        body = Encoder.load(work.minilm).factor(TABLE_RANK).narrow(INNER_WIDTH, work.texts, sample)
        start = rotation(body.vectors(work.texts, work.labelled), rows(goal, work.labelled))
        student = Headed(body, start).to(DEVICE)
        texts, near = lessons(work, goal)
        study(student, work.texts, texts, goal, work.lesson(STUDENT), work.seed, near)
        say(report("encoder", evaluate(student, work.texts, work.sets)))
        say(report("in 8 bits", evaluate(rounded(student), work.texts, work.sets)))
        keep(student.state_dict(), path)
    return path


def make_static(work: Work, goal: torch.Tensor, potion: Path) -> Path:
    """The file of the word vectors: potion's, turned and taught to agree with the teachers."""
    path = work.folder / f"static_{work.seed}.safetensors"
    if not path.exists():
        model = Static(narrowed(potion_table(potion, work.minilm)), WIDTH).to(DEVICE)
        plain = model.vectors(work.texts, work.labelled)[:, :STATIC_WIDTH]
        fit = torch.linalg.lstsq(plain, rows(goal, work.labelled)).solution
        model.head.data = fit.contiguous()
        texts, near = lessons(work, goal)
        study(model, work.texts, texts, goal, work.lesson(STATIC), work.seed, near)
        say(report("word vectors", evaluate(model, work.texts, work.sets)))
        keep({"table": model.table.data.half(), "head": model.head.data}, path)
    return path


def make_polished(work: Work, encoder: Path) -> Path:
    """The encoder's file after the short phrases."""
    path = work.folder / f"polished_{work.seed}.safetensors"
    if not path.exists():
        student = polished(work.minilm, [encoder], work.corpus, work.seed, work.quick)
        say(report("polished, in 8 bits", evaluate(rounded(student), work.texts, work.sets)))
        keep(eight_bit_tensors(student), path)
    return path


def vocabulary(base: Path) -> list[str]:
    """The tokens of a tokenizer, by number."""
    known = json.loads((base / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    return sorted(known, key=known.__getitem__)


def potion_table(potion: Path, minilm: Path) -> torch.Tensor:
    """Potion's vectors in the order of MiniLM's vocabulary; zeros for tokens that it has not."""
    (table,) = (v.float() for v in load_file(potion / "model.safetensors").values() if v.ndim == 2)
    number = {token: at for at, token in enumerate(vocabulary(potion))}
    tokens = vocabulary(minilm)
    ordered = torch.zeros(len(tokens), table.shape[1])
    for at, token in enumerate(tokens):
        if token in number:
            ordered[at] = table[number[token]]
    return ordered


def narrowed(table: torch.Tensor) -> torch.Tensor:
    """The directions in which the vectors vary most, at an even scale."""
    used = table[table.norm(dim=1) > 0]
    _, _, basis = torch.linalg.svd(used, full_matrices=False)
    thin = table @ basis[:STATIC_WIDTH].T
    return (thin / thin.norm(dim=1).mean()).to(DEVICE)


def small(corpus: dict[str, Any]) -> dict[str, Any]:
    """A corner of the corpus, enough to go through every stage."""
    sets: list[dict[str, Any]] = []
    for entry in corpus["sets"]:
        train, held = entry["train"][:20], entry["held"][:5]
        kept = sorted({tool for _, right in train + held for tool in right})
        number = {tool: at for at, tool in enumerate(kept)}
        sets.append(
            {
                "name": entry["name"],
                "tools": [entry["tools"][tool] for tool in kept],
                "train": [[q, [number[t] for t in right]] for q, right in train],
                "held": [[q, [number[t] for t in right]] for q, right in held],
            }
        )
    return {"sets": sets, "sentences": corpus["sentences"][:300]}


def run(script: str, *arguments: object) -> None:
    here = Path(__file__).parent
    subprocess.run([sys.executable, str(here / script), *map(str, arguments)], check=True)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("corpus", "mpnet", "minilm", "potion", "work", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


def main() -> None:
    given = options()
    folder = given.work / "quick" if given.quick else given.work
    folder.mkdir(parents=True, exist_ok=True)
    corpus = load_corpus(given.corpus)
    work = Work(
        small(corpus) if given.quick else corpus, given.minilm, folder, given.seed, given.quick
    )
    goal = goals(work, given.mpnet)
    encoder = make_encoder(work, goal)
    static = make_static(work, goal, given.potion)
    best = make_polished(work, encoder)
    tokens = folder / "vocabulary.txt"
    tokens.write_text("\n".join(vocabulary(given.minilm)), encoding="utf-8", newline="\n")
    run(
        "export.py", "--encoder", best, "--static", static, "--vocabulary", tokens,
        "--out", given.out,
    )  # fmt: skip
    say("made", given.out)


if __name__ == "__main__":
    main()
