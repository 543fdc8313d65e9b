"""Write trained models as the files that ship: eight-bit rows, one vocabulary for both.

    python training/export.py --encoder encoder.safetensors... --static static.safetensors \
        --vocabulary vocab.txt --out src/pegboard/embed/weights

The encoder's tensors come as `quantise.rows` made them (`name|q` and `name|s`) or as plain floats.
Rows of tokens that no text can have are left out, and tokens are numbered without them. Matrices are
written in the blocks of columns that `pegboard.embed.encoder` multiplies with, one row per layer.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

LENGTH = 128
BLOCK = 32
EMBEDDINGS = "net.embeddings."
MATRICES = {
    "attend": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "mix": ("attention.output.dense",),
    "inner": ("intermediate.dense",),
    "outer": ("output.dense",),
}


def used_tokens(tokens: list[str]) -> np.ndarray:
    """The numbers of the tokens that a text can have."""
    return np.array([i for i, t in enumerate(tokens) if not t.startswith("[unused")])


def eight_bits(tensors: dict[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    """A matrix as whole numbers and a scale per row."""
    if f"{name}|q" in tensors:
        return tensors[f"{name}|q"], tensors[f"{name}|s"].astype(np.float32).ravel()
    matrix = tensors[name].astype(np.float32)
    scale = np.maximum(np.abs(matrix).max(axis=1), 1e-12) / 127
    return np.rint(matrix / scale[:, None]).astype(np.int8), scale.astype(np.float32)


def full(tensors: dict[str, np.ndarray], name: str) -> np.ndarray:
    if f"{name}|q" in tensors:
        whole, scale = eight_bits(tensors, name)
        return whole * scale[:, None]
    return tensors[name].astype(np.float32)


def encoder_floats(tensors: dict[str, np.ndarray], used: np.ndarray) -> dict[str, np.ndarray]:
    """What the encoder needs beside its bytes."""
    _, scale = eight_bits(tensors, f"{EMBEDDINGS}word_embeddings.0.weight")
    positions = full(tensors, f"{EMBEDDINGS}position_embeddings.weight")[:LENGTH]
    segment = full(tensors, f"{EMBEDDINGS}token_type_embeddings.weight")[0]
    floats = {
        "word_scale": scale[used],
        "widen": full(tensors, f"{EMBEDDINGS}word_embeddings.1.weight").T,
        "position": positions + segment,
        "norm": norm(tensors, f"{EMBEDDINGS}LayerNorm"),
        "head": tensors["head"],
    }
    for at in range(layer_count(tensors)):
        prefix = f"net.encoder.layer.{at}."
        for short, names in MATRICES.items():
            floats[f"{at}.{short}_scale"] = np.concatenate(
                [eight_bits(tensors, f"{prefix}{n}.weight")[1] for n in names]
            )
            floats[f"{at}.{short}_bias"] = np.concatenate(
                [tensors[f"{prefix}{n}.bias"] for n in names]
            )
        floats[f"{at}.norm1"] = norm(tensors, f"{prefix}attention.output.LayerNorm")
        floats[f"{at}.norm2"] = norm(tensors, f"{prefix}output.LayerNorm")
    return {name: np.ascontiguousarray(v, np.float32) for name, v in floats.items()}


def encoder_bytes(tensors: dict[str, np.ndarray]) -> np.ndarray:
    """One row for each layer: its matrices one after another, in blocks of columns."""
    return np.stack(
        [
            np.concatenate(
                [
                    blocks(
                        np.concatenate(
                            [
                                eight_bits(tensors, f"net.encoder.layer.{at}.{n}.weight")[0]
                                for n in names
                            ]
                        )
                    )
                    for names in MATRICES.values()
                ]
            )
            for at in range(layer_count(tensors))
        ]
    )


def blocks(matrix: np.ndarray) -> np.ndarray:
    """A matrix of (outputs, inputs) as (blocks, inputs, columns), flat."""
    outputs, inputs = matrix.shape
    return matrix.reshape(outputs // BLOCK, BLOCK, inputs).transpose(0, 2, 1).ravel()


def restore(folder: Path, tokens: list[str]) -> dict[str, np.ndarray]:
    """The encoder's tensors as floats, from the files that ship: to go on from an earlier version.

    `tokens` is the whole vocabulary; rows of tokens that no text can have are zero.
    """
    with np.load(folder / "encoder_floats.npz") as file:
        floats = dict(file)
    words = np.load(folder / "encoder_words.npy")
    table = np.zeros((len(tokens), words.shape[1]), np.float32)
    table[used_tokens(tokens)] = words * floats["word_scale"][:, None]
    tensors = {
        f"{EMBEDDINGS}word_embeddings.0.weight": table,
        f"{EMBEDDINGS}word_embeddings.1.weight": floats["widen"].T,
        f"{EMBEDDINGS}position_embeddings.weight": floats["position"],
        "head": floats["head"],
    }
    norms = {f"{EMBEDDINGS}LayerNorm": floats["norm"]}
    for at, flat in enumerate(np.load(folder / "encoder_layers.npy")):
        prefix, start = f"net.encoder.layer.{at}.", 0
        for short, names in MATRICES.items():
            scale, bias = floats[f"{at}.{short}_scale"], floats[f"{at}.{short}_bias"]
            width = len(floats[f"{at}.inner_bias" if short == "outer" else "head"])
            end = start + len(scale) * width
            blocked = flat[start:end].reshape(-1, width, BLOCK)
            matrix = blocked.transpose(0, 2, 1).reshape(-1, width) * scale[:, None]
            start = end
            for name, weight, part in zip(
                names, np.split(matrix, len(names)), np.split(bias, len(names)), strict=True
            ):
                tensors[f"{prefix}{name}.weight"], tensors[f"{prefix}{name}.bias"] = weight, part
        norms[f"{prefix}attention.output.LayerNorm"] = floats[f"{at}.norm1"]
        norms[f"{prefix}output.LayerNorm"] = floats[f"{at}.norm2"]
    for name, (weight, bias) in norms.items():
        tensors[f"{name}.weight"], tensors[f"{name}.bias"] = weight, bias
    return {name: np.ascontiguousarray(v, np.float32) for name, v in tensors.items()}


def norm(tensors: dict[str, np.ndarray], name: str) -> np.ndarray:
    return np.stack([tensors[f"{name}.weight"], tensors[f"{name}.bias"]])


def layer_count(tensors: dict[str, np.ndarray]) -> int:
    return 1 + max(int(k.split(".")[3]) for k in tensors if k.startswith("net.encoder.layer."))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", type=Path, nargs="+", required=True)
    parser.add_argument("--static", type=Path, required=True)
    parser.add_argument("--vocabulary", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tokens = options.vocabulary.read_text(encoding="utf-8").rstrip("\n").split("\n")
    used = used_tokens(tokens)
    vocabulary = "\n".join(tokens[i] for i in used)
    (options.out / "vocabulary.txt").write_text(vocabulary, encoding="utf-8", newline="\n")

    tensors = {k: v for path in options.encoder for k, v in load_file(path).items()}
    whole, _ = eight_bits(tensors, f"{EMBEDDINGS}word_embeddings.0.weight")
    np.save(options.out / "encoder_words.npy", whole[used])
    np.save(options.out / "encoder_layers.npy", encoder_bytes(tensors))
    np.savez(options.out / "encoder_floats.npz", **encoder_floats(tensors, used))

    static = load_file(options.static)
    whole, scale = eight_bits(static, "table")
    np.save(options.out / "static_words.npy", whole[used])
    np.savez(options.out / "static_floats.npz", word_scale=scale[used], head=static["head"])
    for path in sorted(options.out.iterdir()):
        print(f"{path.stat().st_size / 1e6:7.2f} MB  {path.name}")


if __name__ == "__main__":
    main()
