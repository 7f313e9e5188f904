"""Tables of a server's kernel times, by the number of tokens and by the context lengths.

A server needs kernel times in every iteration. So they are computed for many sizes at once, as arrays, and then looked up:

    products     each number of rows up to 256; above, 32 steps per octave, at the first and the last row of each step
    experts      8 numbers of rows per octave; other kernels 4
    answers      32 numbers of sequences and 8 contexts per octave
    prompts      32 numbers of tokens per octave, for 8 numbers of cached tokens per octave

Values between are interpolated linearly. The time of a matmul jumps at each tile, whose rows are powers of two, so steps end
where a tile may end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from hwsim.devices import AttentionCall, Work
from hwsim.models.kernel_times import KernelTimes
from hwsim.models.layer import Kernel

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

FINE: Final = 5  # 2**5 points per octave
COARSE: Final = 3
SMOOTH: Final = 2
BLOCKS: Final = (0, 16, 64, 256)  # limits of the blocks of row counts that are computed together
SOME: Final = 97  # rows of the reference kernels, from which the others are scaled
_NAME: Final = "gpu"


class KernelSeconds(NamedTuple):
    """Kernel time on each GPU.

    Args:
        seconds: total time (s).
        compute: time of the compute units (s).
        memory: time of the memory (s).
        flop: floating-point operations.
        moved: bytes moved.
    """

    seconds: float = 0.0
    compute: float = 0.0
    memory: float = 0.0
    flop: float = 0.0
    moved: float = 0.0

    def plus(self, other: KernelSeconds, times: float = 1.0) -> KernelSeconds:
        """Return the sum with `times` x `other`."""
        a, b, c, d, e = self
        p, q, r, s, t = other
        return KernelSeconds(a + times * p, b + times * q, c + times * r, d + times * s, e + times * t)

    def towards(self, other: KernelSeconds, part: float) -> KernelSeconds:
        """Return the linear interpolation towards `other` (`part` 0: this one, 1: the other)."""
        rest, (a, b, c, d, e), (p, q, r, s, t) = 1 - part, self, other
        return KernelSeconds(
            rest * a + part * p, rest * b + part * q, rest * c + part * r, rest * d + part * s, rest * e + part * t
        )


NOTHING: Final = KernelSeconds()
RepeatedKernel = tuple[Kernel, float]  # kernel, number of executions


class LazyTable(dict[K, V]):
    """A table whose entries are computed on first use.

    `make` computes an entry and may enter neighbouring ones.
    """

    def __init__(self, make: Callable[[K], V]) -> None:
        super().__init__()
        self.make = make

    def __missing__(self, key: K) -> V:
        made = self[key] = self.make(key)
        return made


class SingleKernelTimes:
    """The kernels according to the GPU model, each computed once."""

    def __init__(self, times: KernelTimes) -> None:
        self.times, self._works = times, LazyTable(self._solo_seconds)

    def taken(self, group: Iterable[RepeatedKernel]) -> KernelSeconds:
        """Return the total time of a group of kernels."""
        total = NOTHING
        for kernel, times in group:
            work = self.times.asked(kernel)
            alone, compute, memory = self._works[work]
            seconds = self.times.seconds(kernel)
            slower = seconds / alone if alone > 0 else 0.0
            units, bus = min(seconds, slower * compute), min(seconds, kernel.times * memory)
            total = total.plus(KernelSeconds(seconds, units, bus, kernel.times * work.flop, kernel.times * work.traffic), times)
        return total

    def _solo_seconds(self, work: Work) -> tuple[float, float, float]:
        """Return (total, compute, memory) seconds of a kernel according to the GPU model."""
        demand = self.times.gpu.compute(_NAME, work).demand
        alone = self.times.known.setdefault(work, demand.alone(self.times.rates))
        amounts = dict(demand.amounts)
        return alone, amounts.get(f"{_NAME}.compute", 0.0), amounts.get(f"{_NAME}.memory", 0.0)


class ByRows:
    """Kernel times by the number of tokens.

    `make` returns the kernels for a number of tokens; kernels and order do not depend on the number.
    """

    def __init__(self, alone: SingleKernelTimes, make: Callable[[int], Sequence[RepeatedKernel]]) -> None:
        self.alone, self.make = alone, make
        single, twice = make(SOME), make(2 * SOME)
        self.products = [
            (i, kernel, twice[i][0].work, times)
            for i, (kernel, times) in enumerate(single)
            if kernel.work.product is not None
            and kernel.work.product.m == SOME
            and alone.times.by_rows(kernel, np.ones(1)) is not None
        ]
        tabled = {i for i, *_ in self.products}
        self.others = [index for index in range(len(single)) if index not in tabled]
        self.fine = COARSE if any(single[other][0].work.experts is not None for other in self.others) else SMOOTH
        self._products, self._others, self._sums = LazyTable(self._fill), LazyTable(self._other_seconds), LazyTable(self._sum)

    def at(self, rows: int) -> KernelSeconds:
        """Return the time of all kernels for a number of tokens."""
        return self._sums[rows]

    def _sum(self, rows: int) -> KernelSeconds:
        return self._matmul_seconds(rows).plus(interpolate_knots(rows, self.fine, self._others.__getitem__))

    def _other_seconds(self, rows: int) -> KernelSeconds:
        made = self.make(rows)
        return self.alone.taken(made[other] for other in self.others)

    def _matmul_seconds(self, rows: int) -> KernelSeconds:
        if rows <= BLOCKS[-1]:
            return self._products[rows]
        step = 1 << (rows - 1).bit_length() - 1 - FINE
        low = (rows - 1) // step * step
        part = (rows - low - 1) / (step - 1)
        last = self._products[low + step]
        return last if part >= 1 else self._products[low + 1].towards(last, part)

    def _fill(self, rows: int) -> KernelSeconds:
        """Compute the time of all matmuls for all row counts of the same block at once."""
        if rows <= BLOCKS[-1]:
            above = next(index for index, last in enumerate(BLOCKS) if rows <= last)
            points = np.arange(BLOCKS[above - 1] + 1, BLOCKS[above] + 1, dtype=np.float64)
        else:
            octave = (rows - 1).bit_length() - 1
            starts = np.arange(1 << octave, 2 << octave, 1 << octave - FINE, dtype=np.float64)
            points = np.concatenate([starts + 1, starts + (1 << octave - FINE)])
        total = np.zeros((5, len(points)))
        for _, kernel, twice, times in self.products:
            seconds = self.alone.times.by_rows(kernel, points)
            assert seconds is not None
            work, part = kernel.work, points / SOME
            moved = work.traffic + (twice.traffic - work.traffic) * (part - 1)
            total += times * np.stack([*seconds, kernel.times * work.flop * part, kernel.times * moved])
        self._products.update(zip(points.astype(int).tolist(), map(KernelSeconds._make, total.T.tolist()), strict=True))
        return self._products[rows]


class ByContext:
    """Attention times of one token of each of many sequences, by the number of sequences and by the context length.

    `make` returns the kernels for a number of sequences and of tokens.
    """

    def __init__(self, alone: SingleKernelTimes, make: Callable[[int, int], Sequence[RepeatedKernel]], tokens: int = 1) -> None:
        self.alone, self.make, self.tokens = alone, make, tokens
        self.calls = [(kernel, kernel.work.attention, times) for kernel, times in make(1, 2 * SOME)]
        self._answers = LazyTable(self._fill)

    def at(self, sequences: int, context: float) -> KernelSeconds:
        """Return the time of all kernels."""
        step = 1 << max(0, sequences.bit_length() - 1 - FINE)
        low = sequences // step * step
        below = interpolate_knots(context, COARSE, lambda point: self._answers[low, point])
        if low == sequences:
            return below
        return below.towards(
            interpolate_knots(context, COARSE, lambda point: self._answers[low + step, point]), (sequences - low) / step
        )

    def _fill(self, place: tuple[int, int]) -> KernelSeconds:
        sequences, context = place
        if any(call is None for _, call, _ in self.calls):  # attention is not one fused kernel
            return self.alone.taken(self.make(sequences, context))
        low = 1 << max(4, context.bit_length() - 1)
        points: Any = np.arange(1, 33) if context <= 32 else np.concatenate([np.arange(8, 17), np.arange(18, 33, 2)]) * (low // 8)
        total = np.zeros((5, len(points)))
        for kernel, call, times in self.calls:
            assert call is not None
            cached = points - 1.0
            calls = dataclasses.replace(call, sequences=call.sequences * sequences, cached=cached, heads=call.heads * self.tokens)
            total += times * np.stack([*self.alone.times.attending(kernel, calls), *_amounts(kernel, calls, points)])
        for point, taken in zip(points.tolist(), total.T.tolist(), strict=True):
            self._answers[sequences, point] = KernelSeconds(*taken)
        return self._answers[place]


class ByPrompt:
    """Attention times of the tokens of equal prompts, by their number and by the cached tokens of each.

    `make` returns the kernels for a number of prompts, tokens per prompt and cached tokens per prompt.
    """

    def __init__(self, alone: SingleKernelTimes, make: Callable[[int, int, int], Sequence[RepeatedKernel]]) -> None:
        self.alone, self.make = alone, make
        self._prompts, self._sums = LazyTable(self._fill), LazyTable(self._sum)

    def at(self, alike: int, tokens: int, cached: int) -> KernelSeconds:
        """Return the time of one of `alike` prompts."""
        return self._sums[alike, tokens, cached]

    def _sum(self, place: tuple[int, int, int]) -> KernelSeconds:
        prompts, tokens, cached = place
        return interpolate_knots(
            cached, COARSE, lambda before: interpolate_knots(tokens, FINE, lambda point: self._prompts[prompts, point, before])
        )

    def _fill(self, place: tuple[int, int, int]) -> KernelSeconds:
        prompt_count, tokens, cached = place
        made = self.make(prompt_count, tokens, cached)
        fixed = [call for call in made if call[0].work.attention is None and call[0].work.product is not None]  # cached tokens
        fused = [call for call in made if call[0].work.attention is not None]
        if tokens < 2 or len(fixed) + len(fused) < len(made):
            return NOTHING.plus(self.alone.taken(made), 1 / prompt_count)
        low = 1 << max(1, tokens.bit_length() - 1)
        points: Any = np.arange(2, 65) if tokens <= 64 else np.arange(low, 2 * low + 1, low >> FINE)
        total = np.zeros((5, len(points)))
        for kernel, times in fused:
            call = kernel.work.attention
            assert call is not None
            calls = dataclasses.replace(call, queries=1.0 * points)
            total += times * np.stack([*self.alone.times.attending(kernel, calls), *_amounts(kernel, calls, points)])
        total += np.array(self.alone.taken(fixed))[:, None]
        for point, taken in zip(points.tolist(), (total / prompt_count).T.tolist(), strict=True):
            self._prompts[prompt_count, point, cached] = KernelSeconds(*taken)
        return self._prompts[place]


def _amounts(kernel: Kernel, call: AttentionCall, points: Any) -> tuple[Any, Any]:
    """Return FLOP and bytes of attention calls."""
    nothing = 0.0 * points
    return kernel.times * (call.flop + nothing), kernel.times * (call.outer + call.keys + nothing)


def knot(value: float, fine: int = COARSE) -> tuple[int, int]:
    """Return the last knot up to a number, and the distance to the next: 2**fine knots per octave, at least 1 apart.

    >>> knot(5.5), knot(1000.0), knot(1024)
    ((5, 1), (960, 64), (1024, 128))
    """
    floor = int(value)
    step = 1 << max(0, floor.bit_length() - 1 - fine)
    return floor // step * step, step


def interpolate_knots(value: float, fine: int, at: Callable[[int], KernelSeconds]) -> KernelSeconds:
    """Return the function value, interpolated between the nearest knots."""
    low, step = knot(value, fine)
    part = (value - low) / step
    return at(low).towards(at(low + step), part) if part > 0 else at(low)
