"""Collect public texts without labels, for distillation only: one text per line on standard output.

    python training/loose_texts.py --clinc DIR --polyai DIR --wordnet DIR --debian FILE

Each source is optional. DIR is a clone of github.com/clinc/oos-eval (CC BY 3.0), of
github.com/PolyAI-LDN/task-specific-datasets (CC BY 4.0), or the
`usr/share/wordnet` of Debian's `wordnet-base` (WordNet licence); FILE is the output of
`apt-cache dumpavail`. The teachers say where these texts lie in meaning; nothing else is taken from them.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

MOST = 60_000  # of one source


def clinc(folder: Path) -> Iterator[str]:
    data = json.loads((folder / "data" / "data_full.json").read_text(encoding="utf-8"))
    for part in data.values():
        for text, _ in part:
            yield text


def polyai(folder: Path) -> Iterator[str]:
    for name in ("train.csv", "test.csv"):
        with (folder / "banking_data" / name).open(encoding="utf-8") as file:
            yield from (row["text"] for row in csv.DictReader(file))


def wordnet(folder: Path) -> Iterator[str]:
    for name in ("verb", "noun", "adj"):
        for line in (folder / f"data.{name}").read_text(encoding="latin-1").splitlines():
            _, bar, gloss = line.partition(" | ")
            if bar:
                yield from (part.strip().strip('"') for part in gloss.split('; "'))


def debian(file: Path) -> Iterator[str]:
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("Description:"):
            yield line.removeprefix("Description:").strip()


def _shuffle(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    readers = {"clinc": clinc, "polyai": polyai, "wordnet": wordnet, "debian": debian}
    for name in readers:
        parser.add_argument(f"--{name}", type=Path)
    options = vars(parser.parse_args())
    for name, read in readers.items():
        if options[name] is not None:
            texts = {" ".join(text.split())[:200] for text in read(options[name])}
            chosen = sorted((t for t in texts if len(t) > 8), key=_shuffle)[:MOST]
            sys.stdout.writelines(f"{text}\n" for text in chosen)


if __name__ == "__main__":
    main()
