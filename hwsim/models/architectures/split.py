"""A network over several GPUs: layer by layer (stages), or every layer over all of them (channels and units).

    stages(network, 4, weights)     where to cut, so that the longest stage is as short as it can be
    split(network, 4)               what each of four GPUs does of every layer, and what they exchange in between

A cut between stages lies between the blocks of the network: inside a block several arrays would cross. If channels are split,
each GPU computes its part of the channels (or units) of every convolution and linear map, after the inputs are gathered from
all GPUs. Backward, every GPU has a part of each gradient of the input; the parts are added up and scattered. Norms,
activations and pools work on the channels that a GPU has. Convolutions in groups keep to their own channels.

**Source**: Krizhevsky, Sutskever and Hinton, "ImageNet classification with deep convolutional neural networks", 2012, and
"One weird trick", arXiv:1404.5997; Zhang et al., "Dive into Deep Learning", chapter 13.5 (splitting the problem).
**Error**: none in what is counted; a real program may gather less often (AlexNet's two halves meet at three layers).
**Range**: classes that the GPUs do not divide are computed whole by each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain, groupby, pairwise, takewhile
from typing import Final

from hwsim.models.architectures.units import Unit, size
from hwsim.records import dataclass

_PRODUCTS: Final = ("conv", "linear")


class CannotSplit(ValueError):
    """The network cannot be cut like that."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A layer as one GPU of a split does it.

    gathers: numbers of one example that come in from all GPUs; scatters: of the gradient that goes back, added up.
    """

    unit: Unit
    gathers: int = 0
    scatters: int = 0


def split(units: Sequence[Unit], gpus: int) -> tuple[Piece, ...]:
    """The part of each layer on one of the GPUs.

    Raises:
        CannotSplit: channels or units that do not come out even; all of the layers that have them.
    """
    if gpus == 1:
        return tuple(map(Piece, units))
    wrong = list(uneven(units, gpus))
    if wrong:
        raise CannotSplit("; ".join(wrong))
    pieces: list[Piece] = []
    gathered: set[tuple[str, ...]] = set()
    last, first = _last(units), next((at for at, unit in enumerate(units) if unit.kind in _PRODUCTS), len(units))
    for at, unit in enumerate(units):
        is_undivided = at == last and unit.out[0] % gpus  # the classes, computed by every GPU
        part = 1 if is_undivided else gpus
        if unit.kind not in _PRODUCTS:
            pieces.append(Piece(_narrow(unit, gpus if at > first and unit.into[0] % gpus == 0 else 1)))
        elif unit.groups > 1 and unit.groups % gpus == 0:
            pieces.append(Piece(replace(_narrow(unit, gpus), groups=unit.groups // gpus)))
        else:
            narrowed = replace(unit, out=(unit.out[0] // part, *unit.out[1:]), parameters=unit.parameters // part)
            again = _branch(unit) in gathered
            gathered.add(_branch(unit))
            numbers = size(unit.into) if at > 0 and gpus > 1 else 0
            pieces.append(Piece(narrowed, 0 if again else numbers, 0 if again or is_undivided else numbers))
    return tuple(pieces)


def uneven(units: Sequence[Unit], gpus: int) -> Iterator[str]:
    """A line for each kind of number that the GPUs do not divide."""
    last = _last(units)
    for at, unit in enumerate(units):
        if unit.kind in _PRODUCTS and at != last and unit.out[0] % gpus:
            kind = "channels" if unit.kind == "conv" else "units"
            yield f"the {unit.out[0]} {kind} of layer {unit.name} cannot be split evenly over {gpus} GPUs"


def _last(units: Sequence[Unit]) -> int:
    """The last product: the classes."""
    return max((at for at, unit in enumerate(units) if unit.kind in _PRODUCTS), default=-1)


def _narrow(unit: Unit, gpus: int) -> Unit:
    into, out = ((shape[0] // gpus, shape[1], shape[2]) for shape in (unit.into, unit.out))
    return replace(unit, into=into, out=out, parameters=unit.parameters // gpus)


def _branch(unit: Unit) -> tuple[str, ...]:
    """Layers that take the same array: the way around a block and its first layer, and the first layers of branches."""
    parts = unit.name.split(".")
    numbers = _numbers(unit)
    if parts[-1] == "around" or (parts[-1] == "conv0" and len(numbers) == 2):
        return (*numbers, "around")
    if len(numbers) == 4 and numbers[3] == "0":
        return (*numbers[:2], "branches")
    return (unit.name,)


def _numbers(unit: Unit) -> tuple[str, ...]:
    """The numbers that a layer's name begins with: entry, turn, branch, ..."""
    return tuple(takewhile(str.isdigit, unit.name.split(".")))


def blocks(units: Sequence[Unit]) -> tuple[tuple[Unit, ...], ...]:
    """The layers between which an only array passes on: an entry of the network, or one turn of it."""
    return tuple(tuple(some) for _, some in groupby(units, lambda unit: _numbers(unit)[:2]))


def stages(units: Sequence[Unit], count: int, seconds: Callable[[Unit], float]) -> tuple[tuple[Unit, ...], ...]:
    """The layers of `count` GPUs, each with the next ones: the longest of them as short as cuts between blocks allow.

    Raises:
        CannotSplit: fewer blocks than GPUs.

    >>> from hwsim.models.library import load_network
    >>> [len(each) for each in stages(load_network("vgg-11").chain(), 2, lambda unit: unit.flop)]
    [10, 18]
    """
    cut = blocks(units)
    if count > len(cut):
        raise CannotSplit(f"{count} stages, but the network has only {len(cut)} blocks")
    sums = list(accumulate((math.fsum(map(seconds, each)) for each in cut), initial=0.0))

    best: list[tuple[float, tuple[int, ...]]] = [(end, (0,)) for end in sums]  # by blocks: the longest stage, where each begins
    for parts in range(2, count + 1):
        before, best = best, []
        for i, end in enumerate(sums):
            tried = ((max(before[index][0], end - sums[index]), index) for index in range(parts - 1, i))
            longest, last = min(tried, default=(math.inf, 0))
            best.append((longest, (*before[last][1], last)))
    return tuple(tuple(chain(*cut[a:b])) for a, b in pairwise((*best[-1][1], len(cut))))
