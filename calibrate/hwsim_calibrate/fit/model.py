"""The formula of `hwsim.devices.kernels` for many calls at once, with derivatives for the solver.

Every number of it is positive, and x is its logarithm. A `Name` is a path in the table: ("functions", "add", "each", "fp64"). The
same formula is in `Kernels.time` for one call; a test compares the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hwsim.devices.work import LibraryCall
from hwsim_calibrate.calls import SORTED
from hwsim_calibrate.fit.solve import Floats

Name = tuple[str, ...]
ROLES: Final = ("read", "write", "update")
PAGES_FROM: Final = 2.0**25

# Value of a number before anything is measured, and its spread as a factor e^spread.
_CALL: Final = (300e-9, 3.0)
_EACH: Final = (0.1e-9, 3.0)
_ROW: Final = (10e-9, 2.0)
_PER_BYTE: Final[Mapping[str, Mapping[str, float]]] = {
    "L2": {"read": 5e-12, "write": 10e-12, "update": 5e-12},
    "L3": {"read": 20e-12, "write": 30e-12, "update": 20e-12},
    "memory": {"read": 50e-12, "write": 80e-12, "update": 50e-12},
}
_LOOKUP: Final[Mapping[str, float]] = {"L2": 1e-9, "L3": 3e-9, "memory": 15e-9}
_PRODUCT: Final = {"left": 0.1e-9, "right": 0.1e-9, "result": 0.1e-9, "edge": 1e-9, "depth": 0.1e-9}
SHARPNESS: Final = (3.0, 1.0)
SHARPEST: Final = 10.0
OVERLAP: Final = (0.5, 0.5)
NEAREST: Final = 0.02


@dataclass(frozen=True, slots=True)
class Capacities:
    """Bytes of the caches as the system reports them; spread: uncertainty as a factor e^spread."""

    sizes: Mapping[str, float]
    spread: float = 0.4


def entry_of(call: LibraryCall) -> str:
    """The entry of a call in the table: each measured form has one."""
    return f"{call.function} {call.form}" if call.form else call.function


class Model:
    """The numbers of these calls, and their times for given numbers."""

    def __init__(self, calls: Sequence[LibraryCall], capacities: Capacities) -> None:
        self.calls = tuple(calls)
        self.levels = tuple(capacities.sizes)
        self.names: dict[Name, int] = {}
        self._start: list[float] = []
        self._spread: list[float] = []
        self._name(calls, capacities)
        self.start, self.spread = np.array(self._start), np.array(self._spread)
        self._fixed = self._columns()
        self._apart = np.array([call.product is not None for call in calls])
        self._computing = [at for name, at in self.names.items() if name[0] == "functions" and name[2] in ("each", "row")]
        self._far = [self.names["levels", self.levels[-1], role] for role in ROLES]
        entries = [(row, operand) for row, call in enumerate(calls) for operand in call.operands]
        self._row: NDArray[np.int64] = np.array([row for row, _ in entries], np.int64)
        self._bytes = np.array([operand.bytes for _, operand in entries], np.float64)
        self._since = np.array([operand.since or calls[row].moved + calls[row].span for row, operand in entries], np.float64)
        self._role = np.array([ROLES.index(operand.role) for _, operand in entries], np.int64)
        self._lookups = np.array([call.lookups for call in calls], np.float64)
        self._span = np.array([call.span for call in calls], np.float64)

    def _put(self, name: Name, value: float, spread: float) -> None:
        if name not in self.names:
            self.names[name] = len(self._start)
            self._start.append(math.log(value))
            self._spread.append(spread)

    def _name(self, calls: Sequence[LibraryCall], capacities: Capacities) -> None:
        for call in calls:
            entry = entry_of(call)
            if call.product is not None:
                at = ("products", call.dtype)
                self._put((*at, "call"), *_CALL)
                self._put((*at, "flop"), 1e-11 if call.dtype == "fp32" else 2e-11, 3.0)
                for key, value in _PRODUCT.items():
                    self._put((*at, key), value, 2.0)
                continue
            self._put(("functions", entry, "call"), *_CALL)
            if call.count > 0:
                self._put(("functions", entry, "each", call.dtype), *_EACH)
            if call.rows > 1:
                self._put(("functions", entry, "row"), *_ROW)
        for into in ("new", "out", "self"):
            self._put(("into", into), 30e-9, 1.0)
        self._put(("pages",), 4e-11, 1.0)
        self._put(("lookup",), 0.5e-9, 1.0)
        self._put(("overlap",), *OVERLAP)
        for level, size in capacities.sizes.items():
            nearest = level == self.levels[0]  # the start of a call hides it: the reported size is taken
            self._put(("levels", level, "beyond"), size, NEAREST if nearest else capacities.spread)
            self._put(("levels", level, "lookup"), _LOOKUP[level], 1.5)
            self._put(("levels", level, "sharpness"), *SHARPNESS)
            for role in ROLES:
                self._put(("levels", level, role), _PER_BYTE[level][role], 1.5)

    def _columns(self) -> Floats:
        """The terms that no capacity changes."""
        columns = np.zeros((len(self.calls), len(self._start)))
        for row, call in enumerate(self.calls):
            for name, amount in self._terms(call):
                columns[row, self.names[name]] += amount
            columns[row, self.names["into", call.into]] = 1.0
            columns[row, self.names["pages",]] = new_pages(call)
            columns[row, self.names["lookup",]] = call.lookups
        return columns

    def _terms(self, call: LibraryCall) -> Iterable[tuple[Name, float]]:
        if call.product is not None:
            (m, n, k, batch), at = (
                (call.product.m, call.product.n, call.product.k, call.product.batch),
                ("products", call.dtype),
            )
            yield (*at, "call"), 1.0
            amounts = {"flop": 2.0 * m * n * k, "left": m * k, "right": k * n, "result": m * n, "edge": m + n, "depth": k}
            yield from (((*at, key), float(amount) * batch) for key, amount in amounts.items())
            return
        at = ("functions", entry_of(call))
        yield (*at, "call"), 1.0
        if call.count > 0:
            yield (*at, "each", call.dtype), work_of(call)
        if call.rows > 1:
            yield (*at, "row"), call.rows

    def times(self, x: Floats) -> tuple[Floats, Floats]:
        """Seconds of each call, and their derivatives by each x."""
        matrix, moving = self._fixed.copy(), self._moved(x)
        for name, column in moving.items():
            matrix[:, self.names[name]] += column
        values = np.exp(x)
        for name in self._inner():
            values[self.names[name]] = 0.0  # they are no terms of the sum
        values[self.names["overlap",]] = 0.0
        slopes = matrix * values
        times = slopes.sum(1)
        left = self._hide(x, times, slopes)
        last = {("levels", self.levels[-1], role) for role in ROLES}
        for name in self._inner():
            bent = x.copy()
            bent[self.names[name]] += 1e-3
            more, change = self._moved(bent), np.zeros(len(times))
            for term, column in moving.items():
                seen = left if term in last else 1.0
                change += (more[term] - column) * values[self.names[term]] * seen
            slopes[:, self.names[name]] = change / 1e-3
        return times + 1e-12, slopes

    def _hide(self, x: Floats, times: Floats, slopes: Floats) -> Floats:
        """Take off the part of arithmetic and of traffic to memory that go on at the same time; what of more traffic is seen."""
        part, plain = min(math.exp(x[self.names["overlap",]]), 1.0), ~self._apart
        compute = slopes[:, self._computing].sum(1)
        far = slopes[:, self._far].sum(1)
        hidden = np.where(plain, np.minimum(compute, far), 0.0)
        times -= part * hidden
        shorter = plain & (compute <= far)
        slopes[np.ix_(shorter, self._computing)] *= 1.0 - part
        slopes[np.ix_(plain & ~shorter, self._far)] *= 1.0 - part
        slopes[:, self.names["overlap",]] = -part * hidden if part < 1.0 else 0.0
        return np.where(plain & ~shorter, 1.0 - part, 1.0)

    def _inner(self) -> list[Name]:
        return [("levels", level, key) for level in self.levels for key in ("beyond", "sharpness")]

    def _moved(self, x: Floats) -> dict[Name, Floats]:
        """Bytes, and elements looked up, from each level."""
        count = len(self.calls)
        sharpness = [min(math.exp(x[self.names["levels", level, "sharpness"]]), SHARPEST) for level in self.levels]
        where = [math.exp(x[self.names["levels", level, "beyond"]]) for level in self.levels]
        moved: dict[Name, Floats] = {}
        near, far = (_parts(self.levels, where, sharpness, each) for each in (self._since, self._span))
        for level in self.levels:
            for number, role in enumerate(ROLES):
                role_bytes = np.where(self._role == number, self._bytes * near[level], 0.0)
                moved["levels", level, role] = np.bincount(self._row, role_bytes, count).astype(np.float64)
            moved["levels", level, "lookup"] = self._lookups * far[level]
        return moved


def _parts(levels: Sequence[str], where: Sequence[float], sharpness: Sequence[float], since: Floats) -> dict[str, Floats]:
    """Part of each operand that comes from each level."""
    with np.errstate(divide="ignore", over="ignore"):
        beyond = [
            np.where(since > 0, 1.0 / (1.0 + (size / np.maximum(since, 1e-9)) ** sharp), 0.0)
            for size, sharp in zip(where, sharpness, strict=True)
        ]
    after = [*beyond[1:], np.zeros(len(since))]
    return {level: np.clip(part - further, 0.0, None) for level, part, further in zip(levels, beyond, after, strict=True)}


def work_of(call: LibraryCall) -> float:
    """Elements; for sorting, elements times log2 of the row's length."""
    length = call.count / max(call.rows, 1.0)
    return call.count * (math.log2(max(length, 2.0)) if call.function in SORTED else 1.0)


def new_pages(call: LibraryCall) -> float:
    """Bytes that a call uses for the first time: as recorded, else by the size of its result."""
    return call.fresh if call.fresh is not None else call.written if call.made >= PAGES_FROM else 0.0
