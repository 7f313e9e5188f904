"""A recorded transformer with tensor parallel layers, by rule: each rank becomes a group of GPUs that share its products.

    split(replay, 2)

In each half of a layer the first products are split by columns, the last one by rows, and its results are summed among the
group: once forward, and once backward for the gradients of the half's input. The width of the residual, which norms have as their
last axis, tells them apart:

    width -> more (or less)            columns: the second factor's columns are divided
    width -> width, before attention   columns (queries, keys, values one by one)
    width -> width, after attention    rows
    another -> width                   rows: the inner dimension is divided
    gradients                          the dimension that their product forward divides

Heads of attention, arrays as wide as a product by columns makes, and their optimizer states are divided; norms are not.

**Source**: Shoeybi et al., "Megatron-LM", arXiv:1909.08053, section 3.
**Range**: the GPUs of a group do equal work and do not wait for each other; the sums are not hidden behind other work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from hwsim.importers.aten import meaning, plain
from hwsim.importers.explaining import Explained
from hwsim.importers.recording import Collective, Facts, Rank, What
from hwsim.importers.replay import Replay, replayed
from hwsim.importers.scaling import CannotScale
from hwsim.records import dataclass
from hwsim.units import BYTES

PRODUCTS: Final = frozenset({"mm", "addmm", "linear", "_addmm_activation"})
NORMS: Final = frozenset({"native_layer_norm", "layer_norm", "rms_norm", "_fused_rms_norm"})
Dims = tuple[int, int, int]  # m, k, n


@dataclass(frozen=True, slots=True)
class Summed:
    """Bytes that a group sums after an operator, and how many such sums it stands for."""

    bytes: float
    times: float


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A recording in which each rank stands for a group of equal GPUs.

    Args:
        summed: by position of the rank and slice of the operator. group: GPUs of each.
    """

    replay: Replay
    group: int
    summed: Mapping[tuple[int, int], Summed]
    assumed: tuple[str, ...]


def split(replay: Replay, group: int) -> Split:
    """The recording with the products of each rank divided among that many GPUs.

    Raises:
        CannotScale: the recording does not tell which, or they do not divide.
    """
    summed: dict[tuple[int, int], Summed] = {}
    copies: list[Explained] = []
    for position, each in enumerate(replay.ranks):
        divided = _Divided(each, group)
        copies.append(replace(each, rank=divided.rank))
        summed |= {(position, place): sums for place, sums in divided.summed.items()}
    recording = replace(replay.recording, ranks=tuple(each.rank for each in copies))
    assumed = (
        f"each rank is {group} GPUs that share its products as Megatron does, and sum their results in the open",
        "gradients and optimizer states of products are divided among them",
    )
    return Split(replayed(recording, tuple(copies), replay.mode), group, summed, assumed)


class _Divided:
    """One rank with its products divided."""

    def __init__(self, explained: Explained, group: int) -> None:
        self._explained, self._group = explained, group
        self.rank: Rank = explained.rank
        self.summed: dict[int, Summed] = {}
        rank, slices = explained.rank, explained.rank.slices
        self._names = [plain(name) for name in rank.names]
        shaped = [
            (place, self._names[slices.name[place]], rank.facts[slices.facts[place]])
            for place in np.flatnonzero((slices.what == What.OP) & (slices.facts >= 0)).tolist()
        ]
        self._calls = [call for call in shaped if call[2].shapes is not None]
        self._width = self._residual()
        forward = list(self._forward())
        if not any(rows for *_, rows in forward):
            raise CannotScale("no product gives the residual's width back: which ones are summed is not known")
        self._by_place: dict[int, tuple[int, bool]] = {}
        self._by_dims: dict[tuple[int, ...], tuple[int, bool]] = {}
        for place, (m, k, n), rows in forward:
            side = k if rows else n
            if side % group:
                raise CannotScale(f"a product of {m} x {k} by {k} x {n}: {side} does not divide by {group}")
            self._by_place[place] = side, rows
            self._by_dims.setdefault(tuple(sorted((m, k, n))), (side, False))
        self._wide = {n for _, (_, _, n), rows in forward if not rows and n != self._width}
        self._divide()
        gradients = [place for place, sums in self.summed.items() if sums.times <= 0]
        halves = sum(rows for *_, rows in forward)  # integers: each sums its input's gradients once
        for place in gradients:
            self.summed[place] = replace(self.summed[place], times=min(1.0, halves / len(gradients)))

    def _residual(self) -> int:
        widths = Counter(int(facts.shapes[0][-1]) for _, name, facts in self._calls if name in NORMS and facts.shapes[0])
        if not widths:
            raise CannotScale("no norm tells the width of the residual: the recording is of no transformer, or has no shapes")
        return widths.most_common(1)[0][0]

    def _forward(self) -> Iterator[tuple[int, Dims, bool]]:
        """Products forward in order: place, (m, k, n), and whether they are split by rows."""
        attended = False
        for place, name, facts in self._calls:
            if "attention" in name and "backward" not in name:
                attended = True
            if name not in PRODUCTS or self._is_backward(place):
                continue
            dims = _dims(name, facts)
            if dims is None or self._width not in dims[1:]:
                continue
            _, k, n = dims
            rows = n == self._width and (k != self._width or attended)
            if rows:
                attended = False
            yield place, dims, rows

    def _is_backward(self, place: int) -> bool:
        names, around = self._explained.rank.names, int(self._explained.linked.parent[place])
        slices = self._explained.rank.slices
        while around >= 0:
            name = names[slices.name[around]]
            if "Backward" in name or "autograd::" in name:
                return True
            around = int(self._explained.linked.parent[around])
        return False

    def _divide(self) -> None:
        rank = self._explained.rank
        facts: list[Facts] = [self._gradients(each) for each in rank.facts]
        numbers: dict[tuple[int, str], int] = {}
        column = rank.slices.facts.copy()
        for place, name, each in self._calls:
            new = self._divided(place, name, each)
            if new is None:
                continue
            key = id(each), name
            if key not in numbers:
                numbers[key] = len(facts)
                facts.append(new)
            column[place] = numbers[key]
        self.rank = replace(rank, slices=replace(rank.slices, facts=column), facts=tuple(facts))

    def _gradients(self, facts: Facts) -> Facts:
        """A collective of gradients is of a part of them."""
        stated: Collective | None = facts.collective
        if stated is None:
            return facts
        given, got = -(-stated.elements_in // self._group), -(-stated.elements_out // self._group)
        return replace(facts, collective=replace(stated, elements_in=given, elements_out=got))

    def _divided(self, place: int, name: str, facts: Facts) -> Facts | None:
        """The facts of a GPU's part of an operator; None if it does all of it."""
        if name in PRODUCTS:
            return self._product(place, name, facts)
        if "attention" in name:
            return _mapped(facts, lambda shape: (shape[0], self._part(shape[1]), *shape[2:]) if len(shape) == 4 else shape)
        if name.startswith(("_foreach_", "_fused_")):
            return replace(facts, shapes=_of_lists(facts.shapes, self._group))
        if name in NORMS or name.startswith(("native_layer_norm", "_fused_rms_norm")):
            return None
        wide = any(shape and shape[-1] in self._wide for shape in _tensors(facts))
        if not wide:
            return None
        return _mapped(
            facts, lambda shape: (*shape[:-1], shape[-1] // self._group) if shape and shape[-1] in self._wide else shape
        )

    def _part(self, heads: int) -> int:
        if heads >= self._group and heads % self._group:
            raise CannotScale(f"{heads} heads do not divide by {self._group}")
        return max(1, heads // self._group)

    def _product(self, place: int, name: str, facts: Facts) -> Facts | None:
        dims = _dims(name, facts)
        divided = self._by_place.get(place) or (self._by_dims.get(tuple(sorted(dims))) if dims is not None else None)
        if dims is None or divided is None:
            return None
        side, rows = divided
        m, k, n = dims
        backward = self._is_backward(place)
        size = float(m * n) * BYTES.get(meaning_dtype(name, facts), 4.0)
        if not backward and rows:
            self.summed[place] = Summed(size, 1.0)
        elif backward and not rows and n == self._width and k == side:  # gradient of the input of a product by columns
            self.summed[place] = Summed(size, 0.0)
        if side == k and (backward or rows):
            k //= self._group
        elif side == n:
            n //= self._group
        else:
            m //= self._group
        return _with_dims(name, facts, (m, k, n))


def meaning_dtype(name: str, facts: Facts) -> str:
    """The number format of a product."""
    found = meaning(name, facts).statement
    return str(next(iter(found.values())).get("dtype", "fp32")) if found else "fp32"


def _first(name: str) -> int:
    return 1 if name in ("addmm", "_addmm_activation") else 0


def _dims(name: str, facts: Facts) -> Dims | None:
    shapes: Any = facts.shapes
    at = _first(name)
    if len(shapes) < at + 2 or not shapes[at] or not shapes[at + 1] or len(shapes[at + 1]) != 2:
        return None
    first, second = shapes[at], shapes[at + 1]
    rows = int(np.prod(first[:-1]))
    return (rows, first[-1], second[0]) if name == "linear" else (rows, first[-1], second[1])


def _with_dims(name: str, facts: Facts, dims: Dims) -> Facts:
    shapes, at = list(facts.shapes or ()), _first(name)
    m, k, n = dims
    shapes[at], shapes[at + 1] = (m, k), (n, k) if name == "linear" else (k, n)
    return replace(facts, shapes=tuple(shapes))


def _tensors(facts: Facts) -> list[tuple[int, ...]]:
    return [shape for shape in facts.shapes or () if shape and all(isinstance(each, int) for each in shape)]


def _mapped(facts: Facts, change: Any) -> Facts:
    return replace(facts, shapes=tuple(change(shape) if shape in _tensors(facts) else shape for shape in facts.shapes or ()))


def _of_lists(shapes: Any, group: int) -> Any:
    """Lists of parameters: matrices are divided, vectors are not."""

    def part(shape: Any) -> Any:
        return (-(-shape[0] // group), *shape[1:]) if len(shape) > 1 else shape

    return tuple(
        tuple(part(each) for each in shape) if shape and isinstance(shape[0], tuple) else shape for shape in shapes or ()
    )
