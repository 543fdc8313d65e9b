"""Eight-bit weights: one scale per row, so that each output of a matrix keeps its own range."""

from __future__ import annotations

import torch
from nets import Encoder


def rows(matrix: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Whole numbers from -127 to 127 and the scale of each row."""
    scale = matrix.float().abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / 127
    return (matrix.float() / scale).round().to(torch.int8), scale


def eight_bit_tensors(model: Encoder) -> dict[str, torch.Tensor]:
    """The model's tensors as they are kept: matrices as `name|q` and `name|s`, the rest as floats."""
    kept: dict[str, torch.Tensor] = {}
    for name, value in model.state_dict().items():
        if "pooler" in name or "position_ids" in name:
            continue
        value = value.cpu()
        if value.ndim == 2 and name != "head" and "position" not in name and "type" not in name:
            kept[f"{name}|q"], kept[f"{name}|s"] = (part.contiguous() for part in rows(value))
        else:
            kept[name] = value.float().contiguous()
    return kept


@torch.no_grad()
def rounded(model: Encoder) -> Encoder:
    """The model as it will be after quantisation, for measuring what that costs."""
    out = model.clone()
    for module in out.modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
            whole, scale = rows(module.weight)
            module.weight.data = whole.float() * scale
    return out
