"""Encoders under training: texts to unit vectors, on whatever device there is."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModel

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LENGTH = 128


def load_corpus(path: Path) -> dict[str, Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


class Texts:
    """All texts that a run touches, tokenised once for one vocabulary."""

    def __init__(self, texts: Sequence[str], tokenizer: Tokenizer, length: int = LENGTH) -> None:
        self.number = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        tokenizer.no_padding()
        tokenizer.enable_truncation(length)
        encoded = tokenizer.encode_batch(list(self.number))
        self.pad: int = tokenizer.token_to_id("[PAD]") or tokenizer.token_to_id("<pad>") or 0
        self.lengths = np.array([len(e.ids) for e in encoded])
        self.ids = np.full((len(encoded), length), self.pad, np.int32)
        for row, e in zip(self.ids, encoded, strict=True):
            row[: len(e.ids)] = e.ids
        self.ids = torch.from_numpy(self.ids).to(DEVICE)
        self.counts = torch.from_numpy(self.lengths).to(DEVICE)

    def numbers(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self.number[t] for t in texts])


def fused_attention(
    layer: torch.nn.Module,
    hidden: torch.Tensor,
    mask: torch.Tensor | None,
    bias: torch.Tensor,
    **_: object,
) -> tuple[torch.Tensor]:
    """What an attention layer of mpnet computes, without its large matrix of probabilities.

    `transformers` has no such version of mpnet, and its own takes most of the time of training. The bias of
    positions is given as it is: it is not learned any further.
    """
    shape = (*hidden.shape[:2], layer.num_attention_heads, layer.attention_head_size)
    q, k, v = (m(hidden).view(shape).transpose(1, 2) for m in (layer.q, layer.k, layer.v))
    dropout = layer.dropout.p if layer.training else 0.0
    # No mask if all texts are of the same length.
    mask = bias.expand(len(hidden), -1, -1, -1) if mask is None else bias + mask
    out = F.scaled_dot_product_attention(q, k, v, mask.to(q.dtype), dropout)
    return (layer.o(out.transpose(1, 2).flatten(2)),)


class Encoder(torch.nn.Module):
    """A BERT-like model with mean pooling."""

    def __init__(self, net: torch.nn.Module) -> None:
        super().__init__()
        self.net = net

    @classmethod
    def load(cls, folder: Path, layers: Sequence[int] | None = None) -> Encoder:
        """The model of a folder (config.json and model.safetensors), or some of its layers."""
        config = AutoConfig.from_pretrained(folder)
        net = AutoModel.from_config(config)
        weights = {k: v.float() for k, v in load_file(folder / "model.safetensors").items()}
        missing, _ = net.load_state_dict(weights, strict=False)
        wrong = [k for k in missing if "pooler" not in k and "position_ids" not in k]
        if wrong:
            raise SystemExit(f"{folder}: weights are missing: {wrong[:5]}")
        if config.model_type == "mpnet":
            for layer in net.encoder.layer:
                layer.attention.attn.forward = partial(fused_attention, layer.attention.attn)
            net.encoder.relative_attention_bias.requires_grad_(False)
        return cls(net).only(layers).to(DEVICE)

    def only(self, layers: Sequence[int] | None) -> Encoder:
        if layers is not None:
            stack = self.net.encoder.layer
            self.net.encoder.layer = torch.nn.ModuleList([stack[i] for i in layers])
            self.net.config.num_hidden_layers = len(layers)
        return self

    def clone(self, layers: Sequence[int] | None = None) -> Encoder:
        return copy.deepcopy(self).only(layers)

    @torch.no_grad()
    def narrow(self, width: int, texts: Texts, numbers: np.ndarray) -> Encoder:
        """The same with the `width` inner units of each layer that do most over the texts given."""
        work: dict[int, torch.Tensor] = {}
        hooks = [
            layer.intermediate.register_forward_hook(
                lambda _, __, out, at=at: work.__setitem__(
                    at, work.get(at, 0) + out.float().abs().sum((0, 1))
                )
            )
            for at, layer in enumerate(self.net.encoder.layer)
        ]
        self.vectors(texts, numbers)
        for hook in hooks:
            hook.remove()
        for at, layer in enumerate(self.net.encoder.layer):
            inner, outer = layer.intermediate.dense, layer.output.dense
            most = (work[at] * outer.weight.norm(dim=0)).topk(width).indices.sort().values
            inner.weight.data, inner.bias.data = (
                inner.weight[most].clone(),
                inner.bias[most].clone(),
            )
            outer.weight.data = outer.weight[:, most].clone()
        self.net.config.intermediate_size = width
        return self

    def factor(self, rank: int) -> Encoder:
        """The same with its table of word vectors as a product of two thin ones."""
        table = self.net.embeddings.word_embeddings.weight.data
        left, values, right = torch.linalg.svd(table.float(), full_matrices=False)
        thin = torch.nn.Embedding(table.shape[0], rank)
        wide = torch.nn.Linear(rank, table.shape[1], bias=False)
        root = values[:rank].sqrt()
        thin.weight.data = left[:, :rank] * root
        wide.weight.data = (root[:, None] * right[:rank]).T.contiguous()
        self.net.embeddings.word_embeddings = torch.nn.Sequential(thin, wide).to(DEVICE)
        return self

    def forward(self, texts: Texts, numbers: np.ndarray) -> torch.Tensor:
        """Unit vectors; long and short texts go separately, so that less padding is computed."""
        if len(numbers) < 64:
            return self.unit(self.pooled(texts, numbers))
        order = np.argsort(texts.lengths[numbers], kind="stable")
        cuts = np.array_split(order, 3)
        parts = [self.pooled(texts, numbers[cut]) for cut in cuts]
        back = torch.from_numpy(np.argsort(order)).to(DEVICE)
        return self.unit(torch.cat(parts)[back])

    def unit(self, pooled: torch.Tensor) -> torch.Tensor:
        return F.normalize(pooled, dim=-1)

    def pooled(self, texts: Texts, numbers: np.ndarray) -> torch.Tensor:
        longest = int(texts.lengths[numbers].max())
        rows = torch.from_numpy(np.asarray(numbers)).to(DEVICE)
        ids = texts.ids[rows, :longest].long()
        mask = torch.arange(longest, device=DEVICE)[None] < texts.counts[rows][:, None]
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=DEVICE == "cuda"):
            hidden = self.net(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        keep = mask.unsqueeze(-1).float()
        return (hidden.float() * keep).sum(1) / keep.sum(1)

    @torch.no_grad()
    def vectors(self, texts: Texts, numbers: np.ndarray, batch: int = 1024) -> torch.Tensor:
        """Vectors for use, not for learning; sorted by length on the way so that little is padded."""
        training = self.training
        self.eval()
        order = np.argsort(texts.lengths[numbers], kind="stable")
        parts = [
            self.unit(self.pooled(texts, numbers[order[i : i + batch]]))
            for i in range(0, len(order), batch)
        ]
        self.train(training)
        out = torch.empty_like(torch.cat(parts))
        out[torch.from_numpy(order).to(DEVICE)] = torch.cat(parts)
        return out


class Static(Encoder):
    """Word vectors without context: a weight and a vector per token, a mean, a linear map."""

    def __init__(self, table: torch.Tensor, width: int) -> None:
        torch.nn.Module.__init__(self)
        self.table = torch.nn.Parameter(table.clone())
        self.head = torch.nn.Parameter(torch.eye(table.shape[1], width))

    def unit(self, pooled: torch.Tensor) -> torch.Tensor:
        return F.normalize(pooled @ self.head, dim=-1)

    def pooled(self, texts: Texts, numbers: np.ndarray) -> torch.Tensor:
        longest = int(texts.lengths[numbers].max())
        rows = torch.from_numpy(np.asarray(numbers)).to(DEVICE)
        mask = torch.arange(longest, device=DEVICE)[None] < texts.counts[rows][:, None]
        vectors = self.table[texts.ids[rows, :longest].long()]
        return (vectors * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
