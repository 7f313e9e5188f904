"""Ten models in plain PyTorch, each with a step of training: what predictions of recorded steps are scored on.

The suite `torch` measures none of them, and no number was fitted to their times. It is imported only where PyTorch is installed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.nn.functional as F  # noqa: N812 (its usual name)
from torch import Tensor, nn

from hwsim_calibrate.composites.torch_layers import Attention, Double, Layer, Residual, Timed

Inputs = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Model:
    """A model, its optimizer by name, and one batch; the last tensor of a batch is what the model should say."""

    name: str
    make: Callable[[], nn.Module]
    batch: Callable[[], Inputs]
    optimizer: str = "adamw"

    def step(self) -> Callable[[], None]:
        """A step of training that can run any number of times."""
        torch.manual_seed(0)
        net, (*given, wanted) = self.make(), self.batch()
        optimizer = OPTIMIZERS[self.optimizer](net.parameters())

        def run() -> None:
            optimizer.zero_grad()
            result = net(*given)
            loss = F.cross_entropy(result.flatten(0, -2), wanted) if wanted.dtype == torch.int64 else F.mse_loss(result, wanted)
            loss.backward()
            optimizer.step()

        return run


OPTIMIZERS: Final[dict[str, Callable[[Any], torch.optim.Optimizer]]] = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4),
    "plain sgd": lambda parameters: torch.optim.SGD(parameters, lr=0.01),
    "adam": lambda parameters: torch.optim.Adam(parameters, lr=1e-4),
    "adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4),
    "fused adamw": lambda parameters: torch.optim.AdamW(parameters, lr=1e-4, fused=True),
}


def resnet18(classes: int = 100) -> nn.Module:
    """ResNet-18, as of He et al."""
    rows: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    wide = 64
    for after, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
        rows.append(Residual(wide, after, stride))
        wide = after
    return nn.Sequential(*rows, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class Gpt(nn.Module):
    """GPT-2 small in its width and heads, with fewer layers and words; the embedding is the last layer, too."""

    def __init__(self, layers: int = 3, wide: int = 768, heads: int = 12, words: int = 5000, context: int = 64) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, wide), nn.Embedding(context, wide)
        self.layers = nn.ModuleList(Layer(wide, heads, causal=True) for _ in range(layers))
        self.norm = nn.LayerNorm(wide)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return self.norm(x) @ self.words.weight.T


class Lstm(nn.Module):
    """A model of language: two layers of LSTM."""

    def __init__(self, words: int = 3000, wide: int = 256) -> None:
        super().__init__()
        self.words, self.rnn, self.out = nn.Embedding(words, wide), nn.LSTM(wide, wide, 2), nn.Linear(wide, words)

    def forward(self, tokens: Tensor) -> Tensor:
        result: Tensor = self.out(self.rnn(self.words(tokens))[0])
        return result


class Vit(nn.Module):
    """A vision transformer (tiny in its width)."""

    def __init__(self, layers: int = 6, wide: int = 192, heads: int = 3, side: int = 160, classes: int = 100) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, wide, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, wide))
        self.places = nn.Parameter(torch.zeros(1, (side // 16) ** 2 + 1, wide))
        self.layers = nn.Sequential(*(Layer(wide, heads) for _ in range(layers)))
        self.norm, self.out = nn.LayerNorm(wide), nn.Linear(wide, classes)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.places
        result: Tensor = self.out(self.norm(self.layers(x))[:, 0])
        return result


class Unet(nn.Module):
    """Three levels down and up again, joined at each."""

    def __init__(self, wide: int = 16, classes: int = 4) -> None:
        super().__init__()
        self.down = nn.ModuleList(Double(*each) for each in ((3, wide), (wide, 2 * wide), (2 * wide, 4 * wide)))
        self.ups = nn.ModuleList(nn.ConvTranspose2d(2 * each, each, 2, 2) for each in (2 * wide, wide))
        self.up = nn.ModuleList(Double(2 * each, each) for each in (2 * wide, wide))
        self.out = nn.Conv2d(wide, classes, 1)

    def forward(self, x: Tensor) -> Tensor:
        levels: list[Tensor] = []
        for number, block in enumerate(self.down):
            x = block(x if number == 0 else F.max_pool2d(x, 2))
            levels.append(x)
        for up, block, level in zip(self.ups, self.up, levels[-2::-1], strict=True):
            x = block(torch.cat([up(x), level], 1))
        result: Tensor = self.out(x)
        return result.permute(0, 2, 3, 1)


class Dlrm(nn.Module):
    """Recommendation: sums of embeddings, a network for numbers, products of each two, a network for the answer."""

    def __init__(self, tables: int = 8, rows: int = 20_000, wide: int = 64) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, wide, mode="sum") for _ in range(tables))
        self.below = nn.Sequential(nn.Linear(13, 256), nn.ReLU(), nn.Linear(256, wide), nn.ReLU())
        pairs = (tables + 1) * tables // 2
        self.above = nn.Sequential(nn.Linear(pairs + wide, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))
        self.register_buffer("places", torch.tril_indices(tables + 1, tables + 1, -1))

    def forward(self, numbers: Tensor, *indices: Tensor) -> Tensor:
        x = self.below(numbers)
        rows = torch.stack([x, *(table(each) for table, each in zip(self.tables, indices, strict=True))], 1)
        pairs = torch.bmm(rows, rows.transpose(1, 2))[:, self.places[0], self.places[1]]
        result: Tensor = torch.sigmoid(self.above(torch.cat([x, pairs], 1)))
        return result


class Experts(nn.Module):
    """Layers whose feed-forward part is a mixture: each token goes to two of the experts."""

    def __init__(self, layers: int = 2, wide: int = 256, experts: int = 8, words: int = 2000) -> None:
        super().__init__()
        self.words = nn.Embedding(words, wide)
        self.attention = nn.ModuleList(Attention(wide, 4, causal=True) for _ in range(layers))
        self.norms = nn.ModuleList(nn.RMSNorm(wide) for _ in range(2 * layers))
        self.routers = nn.ModuleList(nn.Linear(wide, experts, bias=False) for _ in range(layers))
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(wide, 2 * wide), nn.SiLU(), nn.Linear(2 * wide, wide)) for _ in range(layers * experts)
        )
        self.out = nn.Linear(wide, words)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        for number, (attention, router) in enumerate(zip(self.attention, self.routers, strict=True)):
            x = x + attention(self.norms[2 * number](x))
            flat = self.norms[2 * number + 1](x).flatten(0, 1)
            weights, chosen = router(flat).softmax(-1).topk(2)
            sums = torch.zeros_like(flat)
            for at in range(router.out_features):
                rows, place = (chosen == at).nonzero(as_tuple=True)
                result = self.experts[number * router.out_features + at](flat[rows]) * weights[rows, place, None]
                sums.index_add_(0, rows, result)
            x = x + sums.view_as(x)
        logits: Tensor = self.out(x)
        return logits


class Bert(nn.Module):
    """BERT in the width of its small kin: norms after each half, dropout."""

    def __init__(self, layers: int = 4, wide: int = 256, heads: int = 4, words: int = 4000, context: int = 64) -> None:
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(words, wide), nn.Embedding(context, wide), nn.Embedding(2, wide)
        self.norm, self.dropout = nn.LayerNorm(wide), nn.Dropout(0.1)
        self.layers = nn.ModuleList(Layer(wide, heads, before=False, dropout=0.1) for _ in range(layers))
        self.mix, self.last, self.out = nn.Linear(wide, wide), nn.LayerNorm(wide), nn.Linear(wide, words)

    def forward(self, tokens: Tensor, kinds: Tensor) -> Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1])) + self.kinds(kinds)
        x = self.dropout(self.norm(x))
        for layer in self.layers:
            x = layer(x)
        result: Tensor = self.out(self.last(F.gelu(self.mix(x))))
        return result


class Diffusion(nn.Module):
    """One level of a diffusion model: residual blocks with the time, attention over the places and to a text."""

    def __init__(self, wide: int = 128, time: int = 256, text: int = 192) -> None:
        super().__init__()
        self.wide = wide
        self.time = nn.Sequential(nn.Linear(wide, time), nn.SiLU(), nn.Linear(time, time))
        self.into, self.out = nn.Conv2d(4, wide, 3, padding=1), nn.Conv2d(wide, 4, 3, padding=1)
        self.first, self.second = Timed(wide, time), Timed(wide, time)
        self.norm, self.own = nn.GroupNorm(8, wide), Attention(wide, 4)
        self.between, self.text = nn.LayerNorm(wide), Attention(wide, 4, context=text)

    def forward(self, x: Tensor, time: Tensor, text: Tensor) -> Tensor:
        waves = torch.exp(torch.arange(self.wide // 2) * (-math.log(10_000.0) / (self.wide // 2)))
        angles = time[:, None] * waves
        embedded = self.time(torch.cat([angles.sin(), angles.cos()], -1))
        x = self.first(self.into(x), embedded)
        batch, channels, height, width = x.shape
        flat = self.norm(x).flatten(2).transpose(1, 2)
        flat = flat + self.own(flat)
        flat = flat + self.text(self.between(flat), text)
        x = self.second(x + flat.transpose(1, 2).reshape(batch, channels, height, width), embedded)
        result: Tensor = self.out(x)
        return result


def mlp() -> nn.Module:
    """Three layers for images of 28 x 28."""
    return nn.Sequential(nn.Linear(784, 1200), nn.ReLU(), nn.Linear(1200, 600), nn.ReLU(), nn.Linear(600, 10))


def _images(count: int, side: int, classes: int) -> Callable[[], Inputs]:
    return lambda: (torch.rand(count, 3, side, side), torch.randint(classes, (count,)))


def _tokens(rows: int, columns: int, words: int, *kinds: int) -> Callable[[], Inputs]:
    """Tokens, further numbers for each, and the tokens that should come."""
    return lambda: (
        *(torch.randint(each, (rows, columns)) for each in (words, *kinds)), torch.randint(words, (rows * columns,))
    )  # fmt: skip


def _clicks() -> Inputs:
    indices = [torch.randint(20_000, (256, 10)) for _ in range(8)]
    return torch.rand(256, 13), *indices, torch.randint(2, (256, 1)).float()


def _noise() -> Inputs:
    return torch.randn(2, 4, 20, 20), torch.rand(2) * 1000, torch.randn(2, 24, 192), torch.randn(2, 4, 20, 20)


MODELS: Final = (
    Model("MLP", mlp, lambda: (torch.rand(96, 784), torch.randint(10, (96,))), "sgd"),
    Model("ResNet-18", resnet18, _images(3, 112, 100), "sgd"),
    Model("GPT-2", Gpt, _tokens(2, 64, 5000), "adamw"),
    Model("LSTM", Lstm, _tokens(30, 12, 3000), "adam"),
    Model("ViT", Vit, _images(4, 160, 100), "fused adamw"),
    Model("U-Net", Unet, lambda: (torch.rand(2, 3, 80, 80), torch.randint(4, (2 * 80 * 80,))), "adam"),
    Model("DLRM", Dlrm, _clicks, "plain sgd"),
    Model("mixture of experts", Experts, _tokens(4, 48, 2000), "adamw"),
    Model("BERT", Bert, _tokens(3, 64, 4000, 2), "adamw"),
    Model("diffusion block", Diffusion, _noise, "fused adamw"),
)
