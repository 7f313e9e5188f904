"""Layers that several models of PyTorch share: attention, a block of a transformer, a residual block."""

from __future__ import annotations

import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn


class Attention(nn.Module):
    """Heads of fused attention: all three inputs are one tensor's, or the keys another's."""

    def __init__(self, wide: int, heads: int, *, causal: bool = False, context: int = 0) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.query, self.keys = nn.Linear(wide, wide), nn.Linear(context or wide, 2 * wide)
        self.out = nn.Linear(wide, wide)

    def forward(self, x: Tensor, context: Tensor | None = None) -> Tensor:
        context = x if context is None else context
        batch, tokens, wide = x.shape
        q = self.query(x).view(batch, tokens, self.heads, -1).transpose(1, 2)
        k, v = self.keys(context).view(batch, context.shape[1], 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(attended.transpose(1, 2).reshape(batch, tokens, wide))


class Layer(nn.Module):
    """A layer of a transformer, with norms before (GPT, ViT) or after (BERT) its two halves."""

    def __init__(self, wide: int, heads: int, *, causal: bool = False, before: bool = True, dropout: float = 0.0) -> None:
        super().__init__()
        self.before = before
        self.attention = Attention(wide, heads, causal=causal)
        self.first, self.second = nn.LayerNorm(wide), nn.LayerNorm(wide)
        self.up, self.down = nn.Linear(wide, 4 * wide), nn.Linear(4 * wide, wide)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        if self.before:
            x = x + self.attention(self.first(x))
            return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))
        x = self.first(x + self.dropout(self.attention(x)))
        return self.second(x + self.dropout(self.down(F.gelu(self.up(x)))))


class Residual(nn.Module):
    """Two convolutions with batch norm, and the way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.BatchNorm2d(after)
        self.second, self.again = nn.Conv2d(after, after, 3, 1, 1, bias=False), nn.BatchNorm2d(after)
        around = [nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)]
        self.around = nn.Sequential(*around) if stride != 1 or before != after else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        inner = F.relu(self.norm(self.first(x)))
        return F.relu(self.again(self.second(inner)) + self.around(x))


class Double(nn.Module):
    """Two convolutions of a U-Net."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(before, after, 3, padding=1), nn.ReLU(inplace=True),
            nn.Conv2d(after, after, 3, padding=1), nn.ReLU(inplace=True),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layers(x)
        return result


class Timed(nn.Module):
    """A residual block of a diffusion model: group norms, SiLU, and the embedded time added."""

    def __init__(self, wide: int, time: int) -> None:
        super().__init__()
        self.first, self.second = nn.GroupNorm(8, wide), nn.GroupNorm(8, wide)
        self.before, self.after = nn.Conv2d(wide, wide, 3, padding=1), nn.Conv2d(wide, wide, 3, padding=1)
        self.time = nn.Linear(time, wide)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        inner = self.before(F.silu(self.first(x))) + self.time(F.silu(time))[:, :, None, None]
        return x + self.after(F.silu(self.second(inner)))
