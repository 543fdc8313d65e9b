"""Make the models that ship, from their base models and a corpus: every stage, with its seeds.

    python training/make_models.py --corpus corpus.json.gz --mpnet DIR --minilm DIR --potion DIR \
        --work DIR --out src/pegboard/embed/weights [--earlier DIR] [--quick]

`--mpnet`, `--minilm` and `--potion` hold `config.json`, `tokenizer.json` and `model.safetensors` of
all-mpnet-base-v2, all-MiniLM-L6-v2 and potion-base-8M, as published. The package must be importable.

    teachers  ->  goals  ->  encoders  ->  short phrases  ->  mean  ->  files
                         ->  word vectors  -------------------------->

`--earlier` is a folder of weights that shipped before: two encoders begin with them instead of MiniLM, learn
for a shorter time, and the mean of both is taken. Without it, a single encoder is trained from MiniLM: two
that train for that long would end too far apart to average. Teachers, and later encoders and word vectors,
run side by side, each in a process of its own: one alone does not keep a large GPU busy. A stage whose file
is in `--work` already is not done again, so a run that was broken off goes on; give an empty folder for
another corpus, other base models or another `--earlier`.

`--quick` goes through all stages in a few steps, to see that they work, and makes nothing good; on a CPU
give it the small base as the teacher too (`--mpnet` the same folder as `--minilm`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from distil import Headed, Lesson, combine, neighbours, rotation, study
from export import restore
from nets import DEVICE, Encoder, Static, Texts, load_corpus
from polish import build_student, load_student, polished
from quantise import eight_bit_tensors, rounded
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from train import Recipe, Set, all_texts, evaluate, fine_tune

from measure import report

TEACHERS = (
    Recipe(epochs=3, rate=5e-5, negatives=1),
    Recipe(epochs=3, rate=5e-5, negatives=2),
)
"""Each is taught with its own number as the seed."""

STUDENTS = 2
"""Encoders that begin with the earlier version and learn the same with different seeds."""
FROM_BASE = Lesson(steps=4000, rate=3e-4, batch=512)
FROM_EARLIER = Lesson(steps=1800, rate=2e-4, batch=512)
STATIC = Lesson(steps=2500, rate=3e-3, batch=512)
WIDTH, TABLE_RANK, INNER_WIDTH, STATIC_WIDTH = 384, 256, 1536, 128
QUICK = {"steps": 3, "batch": 32, "warmup": 2}
STARTED = time.monotonic()


@dataclass
class Work:
    """What a run was given, and the texts that all its stages share."""

    corpus: dict[str, Any]
    mpnet: Path
    minilm: Path
    potion: Path
    earlier: Path | None
    folder: Path
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

    def file(self, stage: str, number: int | None = None) -> Path:
        """What a stage writes."""
        return self.folder / f"{stage if number is None else f'{stage}_{number}'}.safetensors"

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


def teach(work: Work, number: int) -> None:
    """Write where a fine-tuned teacher places every text."""
    texts = work.tokenised(work.mpnet)
    sets = [Set(entry, texts) for entry in work.corpus["sets"]]
    recipe = TEACHERS[number]
    if work.quick:
        recipe = replace(recipe, epochs=1, batch=16, warmup=2)
    model = fine_tune(Encoder.load(work.mpnet), texts, sets, recipe, number)
    say(report(f"teacher {number}", evaluate(model, texts, sets)))
    vectors = model.vectors(texts, np.arange(len(texts.number))).half()
    keep({"goal": vectors}, work.file("goal", number))


def goals(work: Work) -> torch.Tensor:
    """One vector per text, from all teachers together."""
    parts = [
        load_file(work.file("goal", number))["goal"].to(DEVICE) for number in range(len(TEACHERS))
    ]
    if any(len(part) != len(work.texts.number) for part in parts):
        raise SystemExit(f"{work.folder} is of another corpus: give an empty --work.")
    return combine(parts, WIDTH, torch.from_numpy(work.labelled).to(DEVICE))


def lessons(work: Work, goal: torch.Tensor) -> tuple[np.ndarray, dict[int, Sequence[int]]]:
    """The texts to study, requests more often than others, and the tools near each."""
    texts = np.concatenate([np.tile(work.queries, 3), work.loose, np.tile(work.tools, 2)])
    asked = np.unique(np.concatenate([work.queries, work.loose]))
    return texts, neighbours(goal, asked, work.tools)


def earlier_student(work: Work, folder: Path) -> Headed:
    """The encoder of an earlier version."""
    tensors = restore(folder, vocabulary(work.minilm))
    state = {name: torch.from_numpy(value) for name, value in tensors.items()}
    return build_student(work.minilm, state)


def turn(student: Headed, work: Work, goal: torch.Tensor) -> None:
    """Turn the student's space so that the labelled texts come as near to their goals as they can."""
    student.head.data @= rotation(student.vectors(work.texts, work.labelled), goal)


def teach_encoder(work: Work, number: int) -> None:
    """Write a student: a narrowed MiniLM that places texts as the teachers do.

    In floats: what the phrases change is less than a step of eight bits, and would be lost in rounding if
    they began from rounded numbers.
    """
    goal = goals(work)
    if work.earlier is not None:
        student = earlier_student(work, work.earlier)
    else:
        sample = work.labelled[:: 1 if work.quick else 8]
        body = Encoder.load(work.minilm).factor(TABLE_RANK).narrow(INNER_WIDTH, work.texts, sample)
        student = Headed(body, torch.eye(WIDTH)).to(DEVICE)
    turn(student, work, rows(goal, work.labelled))
    texts, near = lessons(work, goal)
    lesson = work.lesson(FROM_EARLIER if work.earlier else FROM_BASE)
    study(student, work.texts, texts, goal, lesson, number, near)
    say(report(f"encoder {number}", evaluate(student, work.texts, work.sets)))
    keep(student.state_dict(), work.file("encoder", number))


def polish_encoder(work: Work, number: int) -> None:
    """Write an encoder after the short phrases."""
    files = [work.file("encoder", number)]
    student = polished(work.minilm, files, work.corpus, number, work.quick)
    keep(student.state_dict(), work.file("polished", number))


def finish_encoder(work: Work) -> None:
    """Write the encoder in eight bits: the mean of the students' weights.

    Students that start from the same weights stay close to each other, so their mean works as a model.
    """
    students = [
        load_student(work.minilm, [work.file("polished", n)])
        for n in range(process_count(work, "polished") or 1)
    ]
    states = [student.state_dict() for student in students]
    mean = {name: sum(state[name] for state in states) / len(states) for name in states[0]}
    final = students[0]
    final.load_state_dict(mean)
    say(report("in 8 bits", evaluate(rounded(final), work.texts, work.sets)))
    keep(eight_bit_tensors(final), work.file("final"))


def teach_static(work: Work) -> None:
    """Write the word vectors: potion's, turned and taught to agree with the teachers."""
    goal = goals(work)
    model = Static(narrowed(potion_table(work.potion, work.minilm)), WIDTH).to(DEVICE)
    plain = model.vectors(work.texts, work.labelled)[:, :STATIC_WIDTH]
    fit = torch.linalg.lstsq(plain, rows(goal, work.labelled)).solution
    model.head.data = fit.contiguous()
    texts, near = lessons(work, goal)
    study(model, work.texts, texts, goal, work.lesson(STATIC), 0, near)
    say(report("word vectors", evaluate(model, work.texts, work.sets)))
    keep({"table": model.table.data.half(), "head": model.head.data}, work.file("static"))


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
        kept = sorted({tool for _, right, *_ in train + held for tool in right})
        number = {tool: at for at, tool in enumerate(kept)}
        sets.append(
            {
                "name": entry["name"],
                "tools": [entry["tools"][tool] for tool in kept],
                "train": [[q, [number[t] for t in right]] for q, right, *_ in train],
                "held": [[q, [number[t] for t in right]] for q, right, *_ in held],
            }
        )
    return {"sets": sets, "sentences": corpus["sentences"][:300]}


STAGES: dict[str, Callable[..., None]] = {
    "goal": teach,
    "encoder": teach_encoder,
    "static": teach_static,
    "polished": polish_encoder,
    "final": finish_encoder,
}
"""The function of each stage, by the name of the file that it writes."""


def process_count(work: Work, stage: str) -> int | None:
    """How many processes run a stage; `None` if its file has no number."""
    students = STUDENTS if work.earlier is not None else 1
    return {"goal": len(TEACHERS), "encoder": students, "polished": students}.get(stage)


def run_side_by_side(work: Work, *names: str) -> None:
    """Run all stages of these names whose files are missing, each in its own process."""
    wanted = [(name, n) for name in names for n in range(process_count(work, name) or 1)]
    started: list[subprocess.Popen[bytes]] = []
    for name, number in wanted:
        at = None if process_count(work, name) is None else number
        if not work.file(name, at).exists():
            stage = [*sys.argv, "--stage", name, "--number", str(number)]
            started.append(subprocess.Popen([sys.executable, *stage]))
    ended = [process.wait() for process in started]
    if any(ended):
        raise SystemExit("a stage failed")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("corpus", "mpnet", "minilm", "potion", "work", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--earlier", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--stage", choices=list(STAGES), help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = options()
    folder = given.work / "quick" if given.quick else given.work
    folder.mkdir(parents=True, exist_ok=True)
    corpus = load_corpus(given.corpus)
    corpus = small(corpus) if given.quick else corpus
    work = Work(corpus, given.mpnet, given.minilm, given.potion, given.earlier, folder, given.quick)
    if given.stage:
        numbers = [] if process_count(work, given.stage) is None else [given.number]
        STAGES[given.stage](work, *numbers)
        return
    run_side_by_side(work, "goal")
    run_side_by_side(work, "encoder", "static")
    run_side_by_side(work, "polished")
    run_side_by_side(work, "final")
    tokens = folder / "vocabulary.txt"
    tokens.write_text("\n".join(vocabulary(given.minilm)), encoding="utf-8", newline="\n")
    export = [
        "--encoder", work.file("final"), "--static", work.file("static"),
        "--vocabulary", tokens, "--out", given.out,
    ]  # fmt: skip
    script = Path(__file__).with_name("export.py")
    subprocess.run([sys.executable, script, *map(str, export)], check=True)
    say("made", given.out)


if __name__ == "__main__":
    main()
