"""Layer entries in the file of a CNN, with one key each."""

from __future__ import annotations

import dataclasses
from typing import Final, Literal

from hwsim.records import dataclass
from hwsim.spec.fields import field

Shape = tuple[int, int, int]
Activation = Literal["relu", "sigmoid", "none"]
MAX_LAYERS: Final = 100_000  # maximum layers, 100x the deepest published networks


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv:
    """A convolution with its norm and activation."""

    channels: int = field("output channels", minimum=1)
    kernel: tuple[int, ...] = field(
        "height and width of the kernel (pixels), or one number for both", one_or_many=True, minimum=1
    )
    stride: int = field("stride (pixels)", default=1, minimum=1)
    padding: tuple[int, ...] | None = field("padding of each edge (pixels; default: half the kernel, rounded down)",
                                            default=None, minimum=0, one_or_many=True)  # fmt: skip
    groups: int = field("number of channel groups (grouped convolution); equal to `channels`: depthwise", default=1, minimum=1)
    norm: bool | None = field("batch norm after the convolution (default: `norm` of the network)", default=None)
    bias: bool | None = field("whether output channels have a bias (default: only without a norm, or with `first`)", default=None)
    activation: Activation | None = field("activation after the norm (default: `activation` of the network)", default=None)
    first: bool = field("norm and activation precede the convolution and apply to its input (DenseNet)", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooling:
    """Max or average pooling."""

    by: Literal["max", "average"] = field(
        "value of each window: its maximum or its average", default="max", record="both read the same and write the same"
    )
    kernel: int | None = field("side of the window in pixels (default: the whole image)", default=None, minimum=1)
    stride: int | None = field("stride in pixels (default: `kernel`)", default=None, minimum=1)
    padding: int = field("padding of each edge in pixels", default=0, minimum=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """A fully connected layer."""

    units: int = field("output units", minimum=1)
    bias: bool = field("bias of each unit", default=True)
    activation: Activation | None = field("activation after the layer (default: `activation` of the network)", default=None)
    dropout: bool = field("dropout of the outputs in training", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Basic:
    """A residual block of two 3 x 3 convolutions."""

    channels: int = field("number of output channels of both convolutions", minimum=1)
    stride: int = field("stride of the first block", default=1, minimum=1)
    times: int = field("number of consecutive blocks", default=1, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """A residual block of a 1 x 1, a 3 x 3 and a 1 x 1 convolution."""

    channels: int = field("channels of the first two convolutions, before `width` and `groups` widen them; the third has four "
                          "times as many", minimum=1)  # fmt: skip
    stride: int = field("stride of the first block", default=1, minimum=1)
    times: int = field("number of consecutive blocks", default=1, minimum=1)
    groups: int = field("groups of the 3 x 3 convolution", default=1, minimum=1)
    width: int | None = field(
        "width per group (ResNeXt: 4): the first two have `channels` x width / 64 x `groups` channels", default=None, minimum=1
    )
    stride_in: Literal["first", "middle"] = field(
        "convolution with the stride: first: 1 x 1 (ResNet of 2015); middle: 3 x 3 (v1.5)", default="middle"
    )
    excite: int | None = field("reduction ratio of squeeze-and-excitation (default: none)", default=None, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """Parallel branches, concatenated by channel."""

    of: tuple[tuple[Entry, ...], ...] = field("branches, each a list of layers; an empty list passes the input on")
    times: int = field("number of consecutive repetitions", default=1, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """An entry of the layer list: one key and its settings."""

    conv: Conv | None = field("convolution with norm and activation", default=None)
    pool: Pooling | None = field("max or average pooling", default=None)
    linear: Linear | None = field("fully connected layer", default=None)
    basic: Basic | None = field("residual blocks of two convolutions", default=None)
    bottleneck: Bottleneck | None = field("residual blocks of three convolutions", default=None)
    branches: Branches | None = field("parallel branches, concatenated by channel (Inception)", default=None)

    def __post_init__(self) -> None:
        if len(self.given) != 1:
            raise ValueError(f"expected exactly one key per layer, got {' and '.join(self.given) or 'none'}")

    @property
    def given(self) -> tuple[str, ...]:
        return tuple(key.name for key in dataclasses.fields(self) if getattr(self, key.name) is not None)
