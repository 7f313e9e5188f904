"""Expansion of the entries of a CNN into units, layers that perform one operation each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Literal

from hwsim.models.architectures import entries
from hwsim.models.architectures.entries import Activation, Basic, Bottleneck, Branches, Conv, Entry, Linear, Pooling, Shape
from hwsim.records import dataclass

Kind = Literal["conv", "linear", "norm", "activation", "pool", "add", "concat", "scale", "dropout"]


class WrongNetwork(ValueError):
    """The layers of a network do not fit together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkUnit:
    """A layer that performs one operation, with its shapes.

    Args:
        sources: number of input arrays.
        kernel, stride, groups: settings of a convolution or a pool.
    """

    name: str
    kind: Kind
    into: Shape
    out: Shape
    kernel: tuple[int, int] = (1, 1)
    stride: int = 1
    groups: int = 1
    sources: int = 1
    parameters: int = 0
    tensors: int = 0

    @property
    def flop(self) -> float:
        """FLOP of one example's forward pass; 0 except for convolutions and linear layers."""
        if self.kind == "conv":
            return 2.0 * size(self.out) * self.into[0] // self.groups * self.kernel[0] * self.kernel[1]
        return 2.0 * size(self.into) * size(self.out) if self.kind == "linear" else 0.0


def size(shape: Shape) -> int:
    """Return the number of elements of an array with this shape."""
    return shape[0] * shape[1] * shape[2]


@dataclass(slots=True)
class NetworkExpansion:
    """Expansion of a network from the image on: each method takes the input shape and returns the output shape."""

    norm: bool
    activation: Activation
    found: list[NetworkUnit] = field(default_factory=list)

    def entries(self, entries: Sequence[Entry], shape: Shape, where: str) -> Shape:
        """Add consecutive entries."""
        for index, entry in enumerate(entries):
            name = f"{where}{index}"
            match entry.conv or entry.pool or entry.linear or entry.basic or entry.bottleneck or entry.branches:
                case Conv() as conv:
                    shape = self.conv(conv, shape, f"{name}.conv")
                case Pooling() as pool:
                    shape = self.pool(pool, shape, f"{name}.pool")
                case Linear() as linear:
                    shape = self.linear(linear, shape, f"{name}.linear")
                case Basic() | Bottleneck() as block:
                    shape = self.residual(block, shape, name)
                case Branches() as branches:
                    for turn in range(branches.times):
                        shape = self.branches(branches, shape, f"{name}.{turn}")
                case None:
                    raise WrongNetwork("expected exactly one key per layer, got none")
        return shape

    def add(self, name: str, kind: Kind, into: Shape, out: Shape | None = None, **more: int) -> Shape:
        """Add a layer that is not a convolution."""
        out = into if out is None else out
        self.put(NetworkUnit(name=name, kind=kind, into=into, out=out, **more))  # type: ignore[arg-type]
        return out

    def put(self, unit: NetworkUnit) -> None:
        """Append a unit."""
        if len(self.found) == entries.MAX_LAYERS:
            raise WrongNetwork(f"{unit.name}: a network has at most {entries.MAX_LAYERS:,} layers")
        self.found.append(unit)

    def conv(self, conv: Conv, shape: Shape, name: str) -> Shape:
        """Add a convolution with its norm and activation."""
        a, b = _pair(conv.kernel, name)
        up, left = (a // 2, b // 2) if conv.padding is None else _pair(conv.padding, name)
        channels, high, wide = shape
        if channels % conv.groups or conv.channels % conv.groups:
            raise WrongNetwork(f"{name}: {conv.groups} groups do not divide {channels} channels in and {conv.channels} out")
        out = conv.channels, _windows(high, a, conv.stride, up, name), _windows(wide, b, conv.stride, left, name)
        norm = self.norm if conv.norm is None else conv.norm
        bias = not norm or conv.first if conv.bias is None else conv.bias
        if conv.first:
            self.normed(norm, conv.activation, shape, name)
        weights = conv.channels * channels // conv.groups * a * b
        self.put(NetworkUnit(name=name, kind="conv", into=shape, out=out, kernel=(a, b), stride=conv.stride, groups=conv.groups,
                      parameters=weights + (conv.channels if bias else 0), tensors=2 if bias else 1))  # fmt: skip
        return out if conv.first else self.normed(norm, conv.activation, out, name)

    def normed(self, norm: bool, activation: Activation | None, shape: Shape, name: str) -> Shape:
        """Add the norm and the activation of a convolution."""
        if norm:
            self.add(f"{name}.norm", "norm", shape, parameters=2 * shape[0], tensors=2)
        return self.activate(activation, shape, name)

    def activate(self, activation: Activation | None, shape: Shape, name: str) -> Shape:
        """Add the activation of the layer, or the network's default."""
        if (self.activation if activation is None else activation) != "none":
            self.add(f"{name}.activation", "activation", shape)
        return shape

    def pool(self, pool: Pooling, shape: Shape, name: str) -> Shape:
        """Add max or average pooling of windows, or of the whole image."""
        channels, high, wide = shape
        if pool.kernel is None:
            unit = NetworkUnit(name=name, kind="pool", into=shape, out=(channels, 1, 1), kernel=(high, wide))
        else:
            stride = pool.stride or pool.kernel
            out = channels, *(_windows(side, pool.kernel, stride, pool.padding, name) for side in (high, wide))
            unit = NetworkUnit(
                name=name, kind="pool", into=shape, out=(out[0], out[1], out[2]), kernel=(pool.kernel,) * 2, stride=stride
            )
        self.put(unit)
        return unit.out

    def linear(self, linear: Linear, shape: Shape, name: str) -> Shape:
        """Add a linear layer over the whole input, and its activation."""
        out = linear.units, 1, 1
        more = linear.units if linear.bias else 0
        self.add(name, "linear", shape, out, parameters=size(shape) * linear.units + more, tensors=2 if linear.bias else 1)
        self.activate(linear.activation, out, name)
        return self.add(f"{name}.dropout", "dropout", out) if linear.dropout else out

    def residual(self, block: Basic | Bottleneck, shape: Shape, name: str) -> Shape:
        """Add residual blocks; the first one has the stride."""
        for turn in range(block.times):
            stride = block.stride if turn == 0 else 1
            prefix = f"{name}.{turn}"
            into = shape
            for index, conv in enumerate(_body(block, stride)):
                shape = self.conv(conv, shape, f"{prefix}.conv{index}")
            if isinstance(block, Bottleneck) and block.excite:
                shape = self.excite(max(1, shape[0] // block.excite), shape, prefix)
            if shape != into:
                around = Conv(channels=shape[0], kernel=(1,), stride=stride, activation="none")
                if self.conv(around, into, f"{prefix}.around") != shape:
                    raise WrongNetwork(f"{prefix}: shape mismatch between the residual branch and its shortcut")
            shape = self.add(f"{prefix}.add", "add", shape, sources=2)
            shape = self.activate(None, shape, prefix)
        return shape

    def excite(self, units: int, shape: Shape, name: str) -> Shape:
        """Add squeeze and excitation: a factor for each channel, computed from the averages of all channels."""
        mean = self.pool(Pooling(by="average"), shape, f"{name}.squeeze")
        mean = self.linear(Linear(units=units), mean, f"{name}.excite0")
        self.linear(Linear(units=shape[0], activation="sigmoid"), mean, f"{name}.excite1")
        return self.add(f"{name}.scale", "scale", shape)

    def branches(self, branches: Branches, shape: Shape, name: str) -> Shape:
        """Add branches with a common input, concatenated by channel."""
        ends = [self.entries(entries, shape, f"{name}.{index}.") for index, entries in enumerate(branches.of)]
        if len({end[1:] for end in ends}) != 1:
            raise WrongNetwork(f"{name}: branches have different output sizes: {', '.join(f'{h} x {w}' for _, h, w in ends)}")
        out = sum(end[0] for end in ends), ends[0][1], ends[0][2]  # integers
        return self.add(f"{name}.concat", "concat", out, sources=len(ends))


def _body(block: Basic | Bottleneck, stride: int) -> tuple[Conv, ...]:
    """Return the convolutions of one residual block."""
    if isinstance(block, Basic):
        return (
            Conv(channels=block.channels, kernel=(3,), stride=stride),
            Conv(channels=block.channels, kernel=(3,), activation="none"),
        )
    inner = block.channels if block.width is None else block.channels * block.width // 64 * block.groups
    first, middle = (stride, 1) if block.stride_in == "first" else (1, stride)
    return (
        Conv(channels=inner, kernel=(1,), stride=first),
        Conv(channels=inner, kernel=(3,), stride=middle, groups=block.groups),
        Conv(channels=4 * block.channels, kernel=(1,), activation="none"),
    )


def _pair(given: tuple[int, ...], name: str) -> tuple[int, int]:
    if len(given) not in (1, 2):
        raise WrongNetwork(f"{name}: expected one number or two (height, width), got {len(given)}")
    return given[0], given[-1]


def _windows(side: int, kernel: int, stride: int, padding: int, name: str) -> int:
    """Return the number of windows along a side."""
    count = (side + 2 * padding - kernel) // stride + 1
    if count < 1:
        raise WrongNetwork(f"{name}: a window of {kernel} does not fit into {side} + 2 x {padding} pixels")
    return count
