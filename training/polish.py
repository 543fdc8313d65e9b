"""Teach a finished student short phrases, and hold it still everywhere else.

    python training/polish.py --base BASE_FOLDER --student student.safetensors... \
        --corpus corpus.json.gz --out polished.safetensors

Requests in the written data are sentences; models and people also search with two or three words
("open a ticket"). A few minutes on a CPU: contrast over `data/phrases.txt`, and for as many texts of
the corpus the vectors that the student had before.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from distil import Headed
from nets import DEVICE, Encoder, Texts, load_corpus
from quantise import eight_bit_tensors, rounded
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModel

from pegboard.core.search.searchable_fields import SearchableFields, build_passage

STEPS, BATCH, RATE, TEMPERATURE, STILL = 160, 32, 3e-5, 0.05, 20.0
LENGTH = 64
HELD_BACK = slice(3, None, 7)
"""Operations whose phrases are never learned."""

Operation = tuple[list[str], list[str]]
"""Passages of the tools that do one thing, and phrases for it."""


def operations(path: Path) -> list[Operation]:
    """Passages of the tools that do one thing, and phrases for it."""
    found: list[Operation] = []
    for paragraph in path.read_text(encoding="utf-8").split("\n\n")[1:]:
        tools: list[str] = []
        for line in paragraph.strip().splitlines():
            if line.startswith(">"):
                found.append((tools, [p.strip() for p in line[1:].split(";")]))
            else:
                server, name, description = (part.strip() for part in line.split("|"))
                tools.append(
                    build_passage(SearchableFields(name, "", server, "", description, "", ""))
                )
    return found


def load_student(base: Path, files: list[Path]) -> Headed:
    """The student from its tensors: floats, or eight bits as `quantise` keeps them."""
    raw = {k: v for path in files for k, v in load_file(path).items()}
    state = {k: v for k, v in raw.items() if "|" not in k}
    state |= {k[:-2]: v.float() * raw[f"{k[:-2]}|s"] for k, v in raw.items() if k.endswith("|q")}
    return build_student(base, state)


def build_student(base: Path, state: dict[str, torch.Tensor]) -> Headed:
    """The student with these weights; of the base only its configuration is read."""
    config = AutoConfig.from_pretrained(base)
    config.intermediate_size = len(state["net.encoder.layer.0.intermediate.dense.bias"])
    net = AutoModel.from_config(config, add_pooling_layer=False)
    words, rank = state["net.embeddings.word_embeddings.0.weight"].shape
    net.embeddings.word_embeddings = torch.nn.Sequential(
        torch.nn.Embedding(words, rank),
        torch.nn.Linear(rank, config.hidden_size, bias=False),
    )
    for table in ("position_embeddings", "token_type_embeddings"):
        # The files that ship have the positions that are used, with the one kind of segment added.
        known = state.get(f"net.embeddings.{table}.weight")
        layer = getattr(net.embeddings, table)
        layer.weight.data = torch.zeros_like(layer.weight)
        if known is not None:
            layer.weight.data[: len(known)] = known
    rest = {k: v for k, v in state.items() if "position_emb" not in k and "token_type" not in k}
    student = Headed(Encoder(net), torch.eye(config.hidden_size))
    missing, unexpected = student.load_state_dict(rest, strict=False)
    wrong = [*unexpected, *(k for k in missing if k.startswith("net.encoder"))]
    if wrong:
        raise SystemExit(f"unknown or missing weights: {wrong[:3]}")
    return student.to(DEVICE).eval()


def hits(model: Encoder, texts: Texts, ops: list[Operation], asked: range) -> tuple[float, float]:
    """How often a right tool comes first, and among the first three, over the tools of all operations."""
    tools = [(t, at) for at, (names, _) in enumerate(ops) for t in names]
    owner = np.array([at for _, at in tools])
    vectors = model.vectors(texts, texts.numbers([t for t, _ in tools]))
    first, three, count = 0, 0, 0
    for at in asked:
        phrases = ops[at][1]
        scores = model.vectors(texts, texts.numbers(phrases)) @ vectors.T
        order = owner[scores.argsort(dim=1, descending=True).cpu().numpy()]
        first += (order[:, 0] == at).sum()
        three += (order[:, :3] == at).any(axis=1).sum()
        count += len(phrases)
    return 100 * first / count, 100 * three / count


def told(model: Encoder, texts: Texts, ops: list[Operation]) -> str:
    first, three = hits(model, texts, ops, range(len(ops)))
    new_first, new_three = hits(model, texts, ops, range(len(ops))[HELD_BACK])
    return (
        f"first {first:.1f} %, in three {three:.1f} %; "
        f"held back: {new_first:.1f} %, {new_three:.1f} %"
    )


def polish(
    model: Headed,
    texts: Texts,
    ops: list[Operation],
    still: np.ndarray,
    before: torch.Tensor,
    seed: int,
    steps: int = STEPS,
) -> None:
    """Teach the model the phrases, in place."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    pairs = [
        (p, t, at) for at, (tools, phrases) in enumerate(ops) for p in phrases for t in [tools]
    ]
    everything = [(t, at) for at, (tools, _) in enumerate(ops) for t in tools]
    model.eval()  # without dropout: what shall stay is compared exactly
    for parameter in model.net.embeddings.parameters():
        parameter.requires_grad_(False)
    learning = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(learning, lr=RATE, weight_decay=0.01)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / 20) * max(0.02, 1 - step / steps)
        drawn = rng.sample(pairs, BATCH)
        chosen = [(rng.choice(tools), at) for _, tools, at in drawn] + rng.sample(everything, BATCH)
        owner = torch.tensor([at for _, at in chosen])
        right = torch.tensor([at for _, _, at in drawn])[:, None] == owner[None]
        queries = model(texts, texts.numbers([p for p, _, _ in drawn]))
        tools = model(texts, texts.numbers([t for t, _ in chosen]))
        logits = queries @ tools.T / TEMPERATURE
        right = right.to(DEVICE)
        loss = (logits.logsumexp(1) - logits.masked_fill(~right, -1e4).logsumexp(1)).mean()
        rows = np.array(rng.sample(range(len(still)), BATCH))
        ours = model(texts, still[rows])
        calm = 1 - (ours * before[torch.from_numpy(rows).to(DEVICE)]).sum(-1)
        optimiser.zero_grad()
        (loss + STILL * calm.mean()).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 20 == 0:
            print(f"step {step} loss {loss.item():.3f} moved {calm.mean().item():.4f}", flush=True)


def quiet_texts(corpus: dict[str, Any], count: int) -> list[str]:
    """Texts learned before, whose vectors shall stay."""
    known = [q for s in corpus["sets"] for q, *_ in s["train"]]
    known += [t for s in corpus["sets"] if s["train"] for t in s["tools"]]
    known = list(dict.fromkeys(known))
    return random.Random(0).sample(known, min(count, len(known)))


def polished(
    base: Path, files: list[Path], corpus: dict[str, Any], seed: int, quick: bool
) -> Headed:
    """The student of the files after the phrases; prints how many of them it finds."""
    ops = operations(Path(__file__).parent / "data" / "phrases.txt")
    held_back = range(len(ops))[HELD_BACK]
    learned = [op for at, op in enumerate(ops) if at not in held_back]
    calm = quiet_texts(corpus, 200 if quick else 4_000)
    phrases = [t for tools, said in ops for t in (*tools, *said)]
    tokenizer = Tokenizer.from_file(str(base / "tokenizer.json"))
    texts = Texts([*phrases, *calm], tokenizer, LENGTH)
    model = load_student(base, files)
    still = texts.numbers(calm)
    print("before:", told(model, texts, ops), flush=True)
    before = model.vectors(texts, still, 64)
    polish(model, texts, learned, still, before, seed, 2 if quick else STEPS)
    print("after:", told(model, texts, ops), flush=True)
    print("in 8 bits:", told(rounded(model), texts, ops), flush=True)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--student", type=Path, nargs="+", required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a few steps, to see that it works")
    options = parser.parse_args()
    corpus = load_corpus(options.corpus)
    model = polished(options.base, options.student, corpus, options.seed, options.quick)
    save_file(eight_bit_tensors(model), options.out)


if __name__ == "__main__":
    main()
