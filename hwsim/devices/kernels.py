"""Measured functions of a library on a CPU: the time of a call, by the cache levels of its arrays.

    call x among_others + count x each + rows x row
        + sum over arrays of bytes / rate(level, role) + lookups x lookup(level) + new / pages

For a matmul, `count x each` is replaced by

    2 m n k / flop + m k x left + k n x right + m n x result + (m + n) x edge + k x depth

`each` includes the first cache (L1). An array takes longer if its reuse distance exceeds the capacity C of a level. The step is
smooth: the share of the array beyond the level is 1 / (1 + (C / reuse distance)^sharpness). The times add up, because a call of
such a library does not overlap them; only memory traffic continues during `overlap` of the arithmetic.
`corrections` are applied on top: the ratios of the measured calls to the formula, weighted by the distance of their sizes (in
factors of two), and shrunk towards 1 if few are near. A measured call takes its measured time.

Source: the parts follow the execution-cache-memory model (Treibig and Hager, PPAM 2009); the numbers are fitted by
`hwsim calibrate`.
Error: docs/validation/calibration.md, and the notes of each machine file.
Range: one thread on an otherwise idle core; values that do not change the code path (no denormals, no sorted input).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field as attribute
from dataclasses import replace
from typing import Final, Literal, NamedTuple

from hwsim.devices.work import LibraryCall, Operand
from hwsim.records import dataclass
from hwsim.spec.fields import field
from hwsim.spec.mistakes import Problem
from hwsim.units import Bytes, BytesPerSecond, FlopPerSecond, Seconds

Standing = Literal["measured", "interpolated", "extrapolated", "related", "usual"]
HUGE: Final = 2.0**21  # size of a huge page (B)
FAR: Final = 25.0  # squared distance, in factors of two, at which a single measured call counts as much as the formula
CORRECTION_LENGTHS: Final = (3, 5)  # lengths of a correction: of a function, of a matmul
CORRECTION_REACH: Final = 14.0  # distance beyond the measured sizes, in factors of two, up to which the last correction applies
EXTRAPOLATION_FACTOR: Final = 2.0  # factor from which a size counts as extrapolated


@dataclass(frozen=True, slots=True)
class CacheTier:
    """The extra time of a byte over the L1 cache."""

    beyond: Bytes = field("reuse distance (bytes accessed since the last use) from which an array comes from this level",
                          exclusive_minimum=0.0)  # fmt: skip
    read: BytesPerSecond | None = field("extra time of reads over L1, as bytes per second; no extra time if omitted",
                                        default=None, exclusive_minimum=0.0)  # fmt: skip
    write: BytesPerSecond | None = field("extra time of writes over L1, as bytes per second; no extra time if omitted",
                                         default=None, exclusive_minimum=0.0)  # fmt: skip
    update: BytesPerSecond | None = field("extra time of in-place updates over L1, as bytes per second; no extra time if "
                                          "omitted", default=None, exclusive_minimum=0.0)  # fmt: skip
    lookup: Seconds = field("extra time of a random lookup over the L1 cache", default=0.0)
    sharpness: float | None = field("sharpness of the transition from the previous level (default: `sharpness` of `kernels`)",
                                    default=None, exclusive_minimum=0.0)  # fmt: skip

    def rate(self, role: str) -> float | None:
        return self.write if role == "write" else self.update if role == "update" else self.read


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a numerical library such as numpy, fitted to measured times."""

    call: Seconds = field("fixed time of a call", default=0.0)
    each: Mapping[str, Seconds] = field("time of an element by number format, e.g. {fp64: 0.1 ns}", default_factory=dict)
    row: Seconds = field("time of an inner loop", default=0.0)
    log: bool = field("whether the time of an element grows with log2(row length), as in sorting", default=False)
    counts: tuple[float, float] = field("smallest and largest number of elements measured", default=(1.0, 1e18))


@dataclass(frozen=True, slots=True)
class Form:
    """A layout of operands, for functions that were not measured in that layout."""

    call: Seconds = field("extra fixed time of a call", default=0.0)
    row: Seconds = field("time of an inner loop", default=0.0)
    each: Seconds = field("extra time of an element", default=0.0)


@dataclass(frozen=True, slots=True)
class MatmulTime:
    """The time of a matmul (m x k) by (k x n)."""

    flop: FlopPerSecond = field("FLOP/s of large matmuls", exclusive_minimum=0.0)
    call: Seconds = field("fixed time of a call", default=0.0)
    left: Seconds = field("time of an element of the first operand", default=0.0)
    right: Seconds = field("time of an element of the second operand", default=0.0)
    result: Seconds = field("time of an element of the result", default=0.0)
    edge: Seconds = field("time of a row or column of the result", default=0.0)
    depth: Seconds = field("time of a step of k", default=0.0)
    counts: tuple[float, float] = field("smallest and largest m n k measured", default=(1.0, 1e30))


@dataclass(frozen=True, slots=True)
class Corrections:
    """The ratios of measured to calculated time, for the measured calls."""

    width: float = field("sizes within this many factors of two of a measured call are corrected by it",
                         default=1.0, exclusive_minimum=0.0)  # fmt: skip
    shrink: float = field("weight of the formula against one measured call; a smaller weight favours the measurement",
                          default=0.3, minimum=0.0)  # fmt: skip
    few: int = field("up to this number of measured calls, the sizes between them are interpolated", default=0, minimum=0)
    points: Mapping[str, tuple[tuple[float, ...], ...]] = field("measured calls by function, number format and place of the "
                                                                "result: elements, inner loops (m, n, k, batch of a matmul), and "
                                                                "the ratio of measured to calculated time",
                                                                default_factory=dict)  # fmt: skip

    def of(self, key: str, point: tuple[float, ...]) -> tuple[float, bool]:
        """Return (ratio, whether exactly this call was measured)."""
        points = self.points.get(key, ())
        logs = [math.log2(size_) for size_ in point]
        rows: list[tuple[float, float]] = []
        is_flat = is_call = len(point) == 2
        is_flat = is_flat and point[1] <= 1.0
        beyond = 0.0  # factors of two
        if is_call and points:  # beyond the measured sizes: the correction at their end; far beyond: the formula alone
            size = min(max(logs[0], math.log2(max(points[0][0], 1.0))), math.log2(max(points[-1][0], 1.0)))
            beyond, logs[0] = abs(size - logs[0]), size
        fade = 1.0 if beyond <= CORRECTION_REACH else math.exp(-((beyond - CORRECTION_REACH) ** 2) / (2.0 * self.width**2))
        for *sizes, ratio in points:
            is_flat = is_flat and sizes[1] <= 1.0
            distance = math.fsum(
                (math.log2(max(far_point, 1.0)) - near_point) ** 2 for far_point, near_point in zip(sizes, logs, strict=False)
            )
            if distance < 1e-12:
                return (ratio, True) if beyond <= 1e-6 else (ratio**fade, False)
            rows.append((distance, math.log(ratio)))
        if not rows:
            return 1.0, False
        sparse = is_flat and len(rows) <= self.few  # along one line
        weights = [1.0 / distance if sparse else math.exp(-distance / (2.0 * self.width**2)) for distance, _ in rows]
        total = math.fsum(weight * log for weight, (_, log) in zip(weights, rows, strict=True))
        weight = math.fsum(weights) + (1.0 / FAR if sparse else self.shrink)
        return (math.exp(fade * total / weight), False) if weight > 0 else (1.0, False)


class CallTime(NamedTuple):
    """The time of one call in parts (s), before `ratio`.

    Attributes:
        call: fixed time of the call.
        compute: arithmetic and inner loops.
        moving: extra time of arrays beyond the L1 cache.
        lookups: random lookups.
        pages: new pages.
        memory: bytes from the last level.
        ratio: correction.
        standing: how well the time is known.
    """

    call: float
    compute: float
    moving: float
    lookups: float
    pages: float
    memory: float  # B
    ratio: float
    standing: Standing

    @property
    def body(self) -> float:
        return (self.compute + self.moving + self.lookups + self.pages) * self.ratio

    @property
    def seconds(self) -> float:
        return self.call * self.ratio + self.body


@dataclass(frozen=True, slots=True)
class MeasuredFunctions:
    """The measured functions of one library."""

    library: str = field("name and version of the library", default="", record="for readers")
    cores: int = field("number of cores that a call uses", default=1, minimum=1)
    sharpness: float = field("sharpness of the transitions between cache levels", default=3.0, exclusive_minimum=0.0)
    into: Mapping[str, Seconds] = field("extra time by destination of the result: new array (new), existing array (out), "
                                        "operand (self)",
                                        default_factory=dict)  # fmt: skip
    among_others: float = field("factor on the fixed time of a call that follows calls of other functions",
                                default=1.0, exclusive_minimum=0.0)  # fmt: skip
    overlap: float = field("overlapped share of the shorter of arithmetic and memory traffic", default=0.0, maximum=1.0)
    pages: BytesPerSecond | None = field("bytes of new pages, used for the first time, per second; no extra time if omitted",
                                         default=None, exclusive_minimum=0.0)  # fmt: skip
    pages_from: Bytes = field("array size from which each new array consists of new pages", default=2.0**25)
    fault: Seconds = field("extra time of a page fault, for each new page of 4 KiB", default=0.0)
    lookup: Seconds = field("time of a random lookup in the L1 cache", default=0.0)
    levels: Mapping[str, CacheTier] = field(
        "cache levels beyond the L1 cache, and memory, from the nearest", default_factory=dict
    )
    functions: Mapping[str, Function] = field("measured functions by name, or by name and operand layout: `sum`, `sum rows`",
                                              default_factory=dict)  # fmt: skip
    forms: Mapping[str, Form] = field("extra times of operand layouts: scalar, row, column, strided", default_factory=dict)
    products: Mapping[str, MatmulTime] = field("measured matmuls by number format", default_factory=dict)
    corrections: Corrections = field("ratios of measured to calculated time for the measured calls", default_factory=Corrections)
    _related: dict[LibraryCall, CallTime] = attribute(default_factory=dict, init=False, repr=False, compare=False)
    _found: dict[LibraryCall, CallTime] = attribute(default_factory=dict, init=False, repr=False, compare=False)

    def problems(self) -> Iterator[Problem]:
        """Yield (key, message, hint) for each invalid combination of keys."""
        before = 0.0
        for name, tier in self.levels.items():
            if tier.beyond <= before:
                yield f"levels.{name}.beyond", f"expected more than the previous level's {before:g} B, got {tier.beyond:g}", None
            before = tier.beyond
        for key, rows in self.corrections.points.items():
            if any(len(row) not in CORRECTION_LENGTHS or min(row) < 0 or row[-1] == 0 for row in rows):
                yield (
                    f"corrections.points.{key}",
                    "expected lists of elements, inner loops and ratio, or of m, n, k, batch and ratio",
                    None,
                )

    def unknown(self, call: LibraryCall) -> str:
        """Return the reason why the time of a call is unknown; "" if it is known."""
        if call.cores not in (None, self.cores):
            return f"measured on {self.cores} core{'s' if self.cores > 1 else ''}, not on {call.cores}"
        if call.product is not None:
            return "" if call.dtype in self.products else f"{call.function} of {call.dtype}"
        function = self.function(call)
        if function is None:
            return call.function
        return "" if call.count <= 0 or call.dtype in function[1].each else f"{call.function} of {call.dtype}"

    def function(self, call: LibraryCall) -> tuple[str, Function, tuple[str, ...]] | None:
        """Return (name, entry, unmatched words of the layout) of the measured function whose layout matches the most words."""
        words, untimed = call.form.split(), None
        for functions in range(len(words), -1, -1):
            for name in form_names(call.function, words[:functions]):
                entry = self.functions.get(name)
                if entry is None:
                    continue
                if call.count <= 0 or call.dtype in entry.each:
                    return name, entry, tuple(words[functions:])
                untimed = untimed or (name, entry, tuple(words[functions:]))
        return untimed

    def entry(self, call: LibraryCall) -> str:
        """Return the key that sets the time of a call: `functions.add`, `products.fp32`."""
        if call.product is not None:
            return f"products.{call.dtype}"
        function = self.function(call)
        return f"functions.{function[0] if function else call.function}"

    def time(self, call: LibraryCall) -> CallTime:
        """Return the time of a call that is not `unknown`."""
        time = self._found.get(call)
        if time is None:
            time = self._found[call] = self._time(call)
        return time

    def related(self, call: LibraryCall) -> CallTime | None:
        """Return the time of an `unknown` call, from similar measured functions; None if there is none."""
        if call.cores not in (None, self.cores) or call.product is not None:
            return None
        known_time = self._related.get(call)
        if known_time is None:
            from hwsim.devices.typical_functions import estimate_function

            function = estimate_function(self, call)
            if function is None:
                return None
            around = replace(self, functions={call.function: function}, corrections=Corrections())
            known_time = self._related[call] = around.time(call)._replace(standing="related")
        return known_time

    def _time(self, call: LibraryCall) -> CallTime:
        before, compute, standing = self._computing(call)
        moved = call.moved + call.span
        moving = memory = last_level_s = 0.0
        for operand in call.operands:
            extra_s, last_share, last_s = self._moving(operand, moved)
            moving += extra_s
            last_level_s += last_s
            memory += last_share * operand.bytes
        if call.product is None:  # the traffic of a matmul does not overlap its arithmetic
            moving -= self.overlap * min(compute, last_level_s)
        lookups = call.lookups * (self.lookup + math.fsum(part * tier.lookup for tier, part in self.parts(call.span)))
        fresh = call.fresh if call.fresh is not None else call.written if call.made >= self.pages_from else 0.0
        pages = fresh / self.pages if self.pages else 0.0
        pages += max(call.faults - fresh / HUGE - 1.0, 0.0) * self.fault
        ratio, exact = self.corrections.of(key_of(call), call.point)
        before *= self.among_others if call.among_others else 1.0
        return CallTime(before, compute, moving, lookups, pages, memory, ratio, "measured" if exact else standing)

    def _computing(self, call: LibraryCall) -> tuple[float, float, Standing]:
        """Return (fixed time, arithmetic time, whether similar sizes were measured)."""
        result_s = self.into.get(call.into, 0.0)
        if call.product is not None:
            time, (m, n, k) = self.products[call.dtype], (call.product.m, call.product.n, call.product.k)
            size = float(m) * n * k
            element_s = (
                2.0 * size / time.flop
                + m * k * time.left
                + k * n * time.right
                + m * n * time.result
                + (m + n) * time.edge
                + k * time.depth
            )
            return time.call + result_s, element_s * call.product.batch, _standing(size, time.counts)
        _, entry, form_words = self.function(call) or ("", Function(), ())
        forms = [self.forms[word] for word in form_words if word in self.forms]
        row = max((form.row for form in forms), default=0.0) or entry.row
        work = call.count * (math.log2(max(call.count / max(call.rows, 1.0), 2.0)) if entry.log else 1.0)
        rows = call.rows if call.rows > 1 else 0.0
        return (
            entry.call + math.fsum(form.call for form in forms) + result_s,
            work * (entry.each.get(call.dtype, 0.0) + math.fsum(form.each for form in forms)) + rows * row,
            _standing(call.count, entry.counts),
        )

    def _moving(self, operand: Operand, moved: float) -> tuple[float, float, float]:
        """Return (extra time over the L1 cache, share from the last level, time of that share) of an array."""
        seconds = part = last_s = 0.0
        for tier, part in self.parts(operand.since or moved):
            rate = tier.rate(operand.role)
            last_s = operand.bytes * part / rate if rate else 0.0
            seconds += last_s
        return seconds, part, last_s

    def parts(self, since: float) -> Iterator[tuple[CacheTier, float]]:
        """Yield each level with the share of an array that comes from it."""
        tiers = list(self.levels.values())
        shares = [step(since, tier.beyond, tier.sharpness or self.sharpness) for tier in tiers]
        for index, tier in enumerate(tiers):
            further = shares[index + 1] if index + 1 < len(tiers) else 0.0
            yield tier, max(shares[index] - further, 0.0)


def step(since: float, capacity: float, sharpness: float) -> float:
    """Return the share of an array beyond a level of this capacity.

    >>> step(100.0, 100.0, 3.0), round(step(200.0, 100.0, 3.0), 2), step(0.0, 100.0, 3.0)
    (0.5, 0.89, 0.0)
    """
    return 0.0 if since <= 0 else 1.0 / (1.0 + math.exp(min(sharpness * math.log(capacity / since), 700.0)))


def form_names(function: str, words: Sequence[str]) -> Iterator[str]:
    """Yield the names under which a form may have been measured, as a numpy method or as a function.

    >>> list(form_names("mean", ["columns", "method"])), list(form_names("add", []))
    (['mean columns method', 'mean columns'], ['add', 'add method'])
    """
    yield " ".join((function, *words))
    without = [word for word in words if word != "method"] if "method" in words else [*words, "method"]
    yield " ".join((function, *without))


def key_of(call: LibraryCall) -> str:
    """Return the key of a call among the corrections.

    >>> key_of(LibraryCall(function="sum", form="rows", dtype="fp32", into="new"))
    'sum rows fp32 new'
    """
    return " ".join(word for word in (call.function, call.form, call.dtype, call.into) if word)


def _standing(size: float, counts: tuple[float, float]) -> Standing:
    low, high = counts
    return "interpolated" if low / EXTRAPOLATION_FACTOR <= size <= high * EXTRAPOLATION_FACTOR else "extrapolated"
