"""A CNN or MLP over several GPUs: by pipeline stages, or by channels and units (tensor parallel).

    stages(network, 4, weights)     stage boundaries that minimize the longest stage
    split(network, 4)               the part of each layer on one of four GPUs, and the exchanges between them

Stage boundaries lie between the blocks of the network, because several arrays would cross a boundary inside a block. If channels
are split, each GPU computes its part of the channels (or units) of every convolution and linear layer, after the inputs are
gathered from all GPUs. In backward, every GPU has a part of each input gradient; the parts are summed and scattered. Norms,
activations and pools process the channels of their GPU. Grouped convolutions need only their own channels.

**Source**: Krizhevsky, Sutskever and Hinton, "ImageNet classification with deep convolutional neural networks", 2012, and
"One weird trick", arXiv:1404.5997; Zhang et al., "Dive into Deep Learning", chapter 13.5 (splitting the problem).
**Error**: none in the counts; a real program may gather less often (AlexNet's two halves exchange at three layers).
**Range**: each GPU computes all classes if their number is not divisible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, groupby, pairwise, takewhile
from typing import Final

from hwsim.models.architectures.units import NetworkUnit, size
from hwsim.records import dataclass

_PRODUCTS: Final = ("conv", "linear")


class CannotSplit(ValueError):
    """The network cannot be split as requested."""


@dataclass(frozen=True, slots=True)
class LayerShard:
    """The part of a layer on one GPU of a split.

    Args:
        gathers: numbers of one example that are gathered from all GPUs.
        scatters: numbers of the input gradient that are summed and scattered.
    """

    unit: NetworkUnit
    gathers: int = 0
    scatters: int = 0


def split(units: Sequence[NetworkUnit], gpus: int) -> tuple[LayerShard, ...]:
    """Return the part of each layer on one of the GPUs.

    Raises:
        CannotSplit: channels or units that the GPUs do not divide; lists all such layers.
    """
    if gpus == 1:
        return tuple(map(LayerShard, units))
    wrong = list(indivisible_layers(units, gpus))
    if wrong:
        raise CannotSplit("; ".join(wrong))
    pieces: list[LayerShard] = []
    gathered: set[tuple[str, ...]] = set()
    last, first = _last_matmul(units), next((index for index, unit in enumerate(units) if unit.kind in _PRODUCTS), len(units))
    for index, unit in enumerate(units):
        is_undivided = index == last and unit.out[0] % gpus  # the classes, which every GPU computes
        part = 1 if is_undivided else gpus
        if unit.kind not in _PRODUCTS:
            pieces.append(LayerShard(_split_channels(unit, gpus if index > first and unit.into[0] % gpus == 0 else 1)))
        elif unit.groups > 1 and unit.groups % gpus == 0:
            pieces.append(LayerShard(replace(_split_channels(unit, gpus), groups=unit.groups // gpus)))
        else:
            narrowed = replace(unit, out=(unit.out[0] // part, *unit.out[1:]), parameters=unit.parameters // part)
            again = _input_key(unit) in gathered
            gathered.add(_input_key(unit))
            numbers = size(unit.into) if index > 0 and gpus > 1 else 0
            pieces.append(LayerShard(narrowed, 0 if again else numbers, 0 if again or is_undivided else numbers))
    return tuple(pieces)


def indivisible_layers(units: Sequence[NetworkUnit], gpus: int) -> Iterator[str]:
    """Yield a message for each layer whose channels or units the GPUs do not divide."""
    last = _last_matmul(units)
    for index, unit in enumerate(units):
        if unit.kind in _PRODUCTS and index != last and unit.out[0] % gpus:
            kind = "channels" if unit.kind == "conv" else "units"
            yield f"the {unit.out[0]} {kind} of layer {unit.name} cannot be split evenly over {gpus} GPUs"


def _last_matmul(units: Sequence[NetworkUnit]) -> int:
    """Return the index of the last convolution or linear layer, which computes the classes."""
    return max((index for index, unit in enumerate(units) if unit.kind in _PRODUCTS), default=-1)


def _split_channels(unit: NetworkUnit, gpus: int) -> NetworkUnit:
    into, out = ((shape[0] // gpus, shape[1], shape[2]) for shape in (unit.into, unit.out))
    return replace(unit, into=into, out=out, parameters=unit.parameters // gpus)


def _input_key(unit: NetworkUnit) -> tuple[str, ...]:
    """Return a key of a layer's input array, which the first layers of parallel branches share with each other or a shortcut."""
    parts = unit.name.split(".")
    numbers = _name_numbers(unit)
    if parts[-1] == "around" or (parts[-1] == "conv0" and len(numbers) == 2):
        return (*numbers, "around")
    if len(numbers) == 4 and numbers[3] == "0":
        return (*numbers[:2], "branches")
    return (unit.name,)


def _name_numbers(unit: NetworkUnit) -> tuple[str, ...]:
    """Return the numbers at the beginning of a layer's name: entry, repetition, branch, ..."""
    return tuple(takewhile(str.isdigit, unit.name.split(".")))


def blocks(units: Sequence[NetworkUnit]) -> tuple[tuple[NetworkUnit, ...], ...]:
    """Return the layers in groups with a single array between them: an entry of the network, or one repetition of it."""
    return tuple(tuple(group) for _, group in groupby(units, lambda unit: _name_numbers(unit)[:2]))


def stages(
    units: Sequence[NetworkUnit], count: int, seconds: Callable[[NetworkUnit], float]
) -> tuple[tuple[NetworkUnit, ...], ...]:
    """Return the layers of `count` pipeline stages. Boundaries lie between blocks and minimize the longest stage.

    Raises:
        CannotSplit: fewer blocks than stages.

    >>> from hwsim.models.library import load_network
    >>> [len(each) for each in stages(load_network("vgg-11").chain(), 2, lambda unit: unit.flop)]
    [10, 18]
    """
    cut = blocks(units)
    if count > len(cut):
        raise CannotSplit(f"{count} stages, but the network has only {len(cut)} blocks")
    sums = list(accumulate((math.fsum(map(seconds, block)) for block in cut), initial=0.0))

    best: list[tuple[float, tuple[int, ...]]] = [
        (end, (0,)) for end in sums
    ]  # by blocks: longest stage, first block of each stage
    for parts in range(2, count + 1):
        before, best = best, []
        for i, end in enumerate(sums):
            tried = ((max(before[index][0], end - sums[index]), index) for index in range(parts - 1, i))
            longest, last = min(tried, default=(math.inf, 0))
            best.append((longest, (*before[last][1], last)))
    return tuple(tuple(chain(*cut[a:b])) for a, b in pairwise((*best[-1][1], len(cut))))
