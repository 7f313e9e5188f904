"""Operators of small versions of ten usual models: all are known, and their FLOP are as PyTorch counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from hwsim.importers.aten import meaning
from hwsim.importers.recording import Facts

torch = pytest.importorskip("torch", exc_type=ImportError)
nn, functional = torch.nn, torch.nn.functional


def resnet() -> tuple[Any, Any]:
    class Block(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.way = nn.Sequential(
                nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, 1, 1)
            )
            self.around = nn.Conv2d(8, 16, 1, 2)

        def forward(self, x: Any) -> Any:
            return functional.relu(self.way(x) + self.around(x))

    net = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1), Block(),
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 4))  # fmt: skip
    return net, torch.randn(2, 3, 32, 32)


def transformer(*, causal: bool, norm_first: bool) -> tuple[Any, Any]:
    class Net(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(50, 32)
            self.first, self.second = nn.LayerNorm(32), nn.LayerNorm(32)
            self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
            self.up, self.down, self.head = nn.Linear(32, 64), nn.Linear(64, 32), nn.Linear(32, 50, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.embedding(tokens)
            y = self.first(x) if norm_first else x
            q, k, v = (each.view(2, 8, 4, 8).transpose(1, 2) for each in self.qkv(y).chunk(3, -1))
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2).reshape(2, 8, 32)
            x = x + functional.dropout(self.out(y), 0.1)
            x = x + self.down(functional.gelu(self.up(self.second(x))))
            return self.head(x)

    return Net(), torch.randint(0, 50, (2, 8))


def vit() -> tuple[Any, Any]:
    net = nn.Sequential(nn.Conv2d(3, 32, 8, 8), nn.Flatten(2), nn.Linear(16, 16), nn.SiLU(), nn.Softmax(-1))
    return net, torch.randn(2, 3, 32, 32)


def unet() -> tuple[Any, Any]:
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.Tanh(),
                        nn.ConvTranspose2d(16, 8, 2, 2), nn.Upsample(scale_factor=2), nn.Conv2d(8, 4, 1))  # fmt: skip
    return net, torch.randn(2, 3, 16, 16)


def lstm() -> tuple[Any, Any]:
    class Net(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.net, self.head = nn.GRU(16, 24), nn.Linear(24, 4)

        def forward(self, x: Any) -> Any:
            return self.head(self.net(x)[0])

    return Net(), torch.randn(5, 3, 16)


def dlrm() -> tuple[Any, Any]:
    class Net(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(100, 16, mode="sum") for _ in range(3))
            self.top = nn.Sequential(nn.Linear(16 + 6, 8), nn.ReLU(), nn.Linear(8, 2), nn.Sigmoid())
            self.bottom = nn.Linear(10, 16)

        def forward(self, x: Any) -> Any:
            rows = torch.arange(24).reshape(4, 6) % 100
            dense = self.bottom(x)
            all_of = torch.stack([dense, *(table(rows) for table in self.tables)], 1)
            pairs = torch.bmm(all_of, all_of.transpose(1, 2))
            upper = torch.triu_indices(4, 4, 1)
            return self.top(torch.cat([dense, pairs[:, upper[0], upper[1]]], 1))

    return Net(), torch.randn(4, 10)


def experts() -> tuple[Any, Any]:
    class Net(nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.router = nn.Linear(16, 4)
            self.experts = nn.ModuleList(nn.Linear(16, 16) for _ in range(4))

        def forward(self, x: Any) -> Any:
            weights, chosen = functional.softmax(self.router(x), -1).topk(2)
            out = torch.zeros_like(x)
            for number, expert in enumerate(self.experts):
                rows, place = torch.where(chosen == number)
                out.index_add_(0, rows, expert(x[rows]) * weights[rows, place, None])
            return out

    return Net(), torch.randn(12, 16)


def diffusion() -> tuple[Any, Any]:
    net = nn.Sequential(nn.GroupNorm(4, 16), nn.SiLU(), nn.Conv2d(16, 16, 3, padding=1, dilation=2), nn.AvgPool2d(2),
                        nn.Conv2d(16, 8, 1), nn.LeakyReLU())  # fmt: skip
    return net, torch.randn(2, 16, 8, 8)


MODELS: Final[dict[str, Callable[[], tuple[Any, Any]]]] = {
    "mlp": lambda: (nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 5)), torch.randn(7, 20)),
    "resnet": resnet, "gpt": lambda: transformer(causal=True, norm_first=True), "lstm": lstm, "vit": vit, "unet": unet,
    "dlrm": dlrm, "mixture of experts": experts, "bert": lambda: transformer(causal=False, norm_first=False),
    "diffusion": diffusion,
}  # fmt: skip


def operators(step: Callable[[], None]) -> list[tuple[str, Facts]]:
    """The operators of a step with their facts."""
    from torch.utils._python_dispatch import TorchDispatchMode

    found: list[tuple[str, Facts]] = []

    class Recorder(TorchDispatchMode):  # type: ignore[misc,unused-ignore]
        def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = dict(zip([each.name for each in func._schema.arguments], args, strict=False)) | (kwargs or {})
            rows = [_fact(given.get(each.name, each.default_value if each.has_default_value() else None))
                    for each in func._schema.arguments]  # fmt: skip
            shapes, dtypes, values = zip(*rows, strict=True) if rows else ((), (), ())
            found.append((str(func), Facts(shapes=shapes, dtypes=dtypes, values=values)))
            return func(*args, **(kwargs or {}))

    with Recorder():
        step()
    return found


def _fact(value: Any) -> tuple[Any, str, str]:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), str(value.dtype), ""
    if isinstance(value, list | tuple) and any(isinstance(each, torch.Tensor) for each in value):
        shapes = tuple(tuple(each.shape) if each is not None else () for each in value)
        return shapes, f"TensorList<{next(each for each in value if each is not None).dtype}>", ""
    return (None, "", "") if value is None else ((), "Scalar", str(value))


def flop(statement: Any) -> float:
    """FLOP of a product or a convolution; 0 of anything else."""
    ((kind, keys),) = statement.items()
    if kind == "matmul":
        return float(2.0 * keys["m"] * keys["n"] * keys["k"] * keys.get("batch", 1))
    if kind != "convolution":
        return 0.0
    (into, out), (high, wide), (a, b) = keys["channels"], keys["result"], keys["kernel"]
    once: float = 2.0 * keys["batch"] * high * wide * out * into // keys.get("groups", 1) * a * b
    return 2 * once if keys["pass"] == "backward" else once


@pytest.mark.parametrize("name", MODELS)
def test_operators_of_a_training_step_are_known_and_have_their_flop(name: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    torch.manual_seed(0)
    net, batch = MODELS[name]()
    optimizer = torch.optim.AdamW(net.parameters())

    def step() -> None:
        net(batch).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    known = [(each, meaning(each, facts)) for each, facts in operators(step)]
    assert {(each, said.why) for each, said in known if said.statement is None and said.why} == set()
    with FlopCounterMode(display=False) as counter:
        step()
    counted = {key: value for key, value in counter.get_flop_counts()["Global"].items() if "attention" not in str(key)}
    assert sum(flop(said.statement) for _, said in known if said.statement is not None) == sum(counted.values())
