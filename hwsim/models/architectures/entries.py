"""Entries of a network of convolutions, as its file writes them: one key each."""

from __future__ import annotations

import dataclasses
from typing import Final, Literal

from hwsim.records import dataclass
from hwsim.spec.fields import field

Shape = tuple[int, int, int]
Activation = Literal["relu", "sigmoid", "none"]
MOST_LAYERS: Final = 100_000  # of any network, a hundred times what the deepest have


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv:
    """A convolution, with its norm and activation."""

    channels: int = field("of its result", minimum=1)
    kernel: tuple[int, ...] = field("height and width, or both", one_or_many=True, minimum=1)
    stride: int = field("pixels from one window to the next", default=1, minimum=1)
    padding: tuple[int, ...] | None = field("pixels added at each edge; half the kernel if left out", default=None, minimum=0,
                                            one_or_many=True)  # fmt: skip
    groups: int = field("of channels that do not mix; as many as channels: depthwise", default=1, minimum=1)
    norm: bool | None = field("batch norm after it; as the network if left out", default=None)
    bias: bool | None = field("a number added for each channel; if it has no norm, where left out", default=None)
    activation: Activation | None = field("after that; as the network if left out", default=None)
    first: bool = field("norm and activation come before it, of what comes in (DenseNet)", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The largest, or the mean, of each window."""

    by: Literal["max", "average"] = field(
        "what is taken of a window", default="max", record="both read the same and write the same"
    )
    kernel: int | None = field("side of the window; the whole image if left out", default=None, minimum=1)
    stride: int | None = field("pixels from one window to the next; as the kernel if left out", default=None, minimum=1)
    padding: int = field("pixels added at each edge", default=0, minimum=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """All of what comes in, to each of its units."""

    units: int = field("of its result", minimum=1)
    bias: bool = field("a number added for each unit", default=True)
    activation: Activation | None = field("after it; as the network if left out", default=None)
    dropout: bool = field("some of its results are left out in training", default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Basic:
    """Two convolutions of 3 x 3 with a way around them."""

    channels: int = field("of both", minimum=1)
    stride: int = field("of the first block", default=1, minimum=1)
    times: int = field("how many one after another", default=1, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bottleneck:
    """Convolutions of 1 x 1, 3 x 3 and 1 x 1 with a way around them."""

    channels: int = field("of the first two, before `groups` widen them; the last has four times as many", minimum=1)
    stride: int = field("of the first block", default=1, minimum=1)
    times: int = field("how many one after another", default=1, minimum=1)
    groups: int = field("of the 3 x 3", default=1, minimum=1)
    width: int | None = field("channels of the first two over `channels` / 64 x groups (ResNeXt: 4)", default=None, minimum=1)
    stride_in: Literal["first", "middle"] = field(
        "which convolution has the stride: 1 x 1 (2015), or 3 x 3 (v1.5)", default="middle"
    )
    excite: int | None = field("squeeze and excitation by channels / so many", default=None, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """Layers side by side, whose channels are put together."""

    of: tuple[tuple[Entry, ...], ...] = field("lists of layers; an empty one passes on what comes in")
    times: int = field("how many one after another", default=1, minimum=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One key and what belongs to it."""

    conv: Conv | None = field("a convolution", default=None)
    pool: Pool | None = field("the largest or the mean of windows", default=None)
    linear: Linear | None = field("a linear map of everything", default=None)
    basic: Basic | None = field("residual blocks of two convolutions", default=None)
    bottleneck: Bottleneck | None = field("residual blocks of three convolutions", default=None)
    branches: Branches | None = field("layers side by side (inception)", default=None)

    def __post_init__(self) -> None:
        if len(self.given) != 1:
            raise ValueError(f"a layer is one key, not {' and '.join(self.given) or 'none'}")

    @property
    def given(self) -> tuple[str, ...]:
        return tuple(each.name for each in dataclasses.fields(self) if getattr(self, each.name) is not None)
