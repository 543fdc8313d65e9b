"""Compare the package's tokenizer with the library that the base model was trained with.

python training/check_tokenizer.py --tokenizer BASE_FOLDER/tokenizer.json --corpus corpus.json.gz
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from nets import load_corpus
from tokenizers import Tokenizer
from train import all_texts

from pegboard.embed.bundled_models import WEIGHTS, tokenizer

LIMIT = 128


def odd_texts(count: int) -> list[str]:
    """Random characters from everywhere, mixed with words."""
    rng = random.Random(0)
    ranges = [
        (0x20, 0x7E),
        (0, 0x2FF),
        (0x370, 0x5FF),
        (0x3040, 0x30FF),
        (0x4E00, 0x9FFF),
        (0x1F300, 0x1FAFF),
    ]
    out: list[str] = []
    for _ in range(count):
        low, high = rng.choice(ranges)
        out.append("".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 40))))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--corpus", type=Path, required=True)
    options = parser.parse_args()
    theirs = Tokenizer.from_file(str(options.tokenizer))
    theirs.no_padding()
    theirs.enable_truncation(LIMIT)
    names = (WEIGHTS / "vocabulary.txt").read_text(encoding="utf-8").split("\n")
    ours = tokenizer()
    texts = list(dict.fromkeys(all_texts(load_corpus(options.corpus)))) + odd_texts(20_000)
    different = 0
    for text, encoded in zip(texts, theirs.encode_batch(texts), strict=True):
        got = [names[number] for number in ours.encode(text, LIMIT)]
        if got != encoded.tokens:
            different += 1
            if different <= 10:
                print(repr(text[:80]), got[:12], encoded.tokens[:12])
    print(f"{different} of {len(texts)} texts differ")


if __name__ == "__main__":
    main()
